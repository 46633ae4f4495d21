/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Where the kernel received what came for a socket: the CPU and the card's receive queue. Any
 * thread.
 */
#pragma once

#include "base/must.h"

/* The CPU (OS number) that last received for the socket, or -1. */
int incoming_cpu(int fd);
/* The receive queue's number (its NAPI id), or 0. */
unsigned incoming_queue(int fd);
/* Receive flow steering is on: the kernel brings what it receives to the CPU that reads it, so
 * moving connections to the CPU that received would chase it. path: the setting. */
bool incoming_has_flows(const char *path);
#define INCOMING_FLOWS_PATH "/proc/sys/net/core/rps_sock_flow_entries"
