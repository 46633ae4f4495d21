// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 the memcached-qos authors

package main

import (
	"bufio"
	"fmt"
	"io"
	"math/rand"
	"net"
	"runtime"
	"strconv"
	"strings"
	"sync"
)

// bugs that a cache may have, for -wrong: the checker has to find each, and nothing in "none".
var bugs = []string{"none", "cas", "stale", "incr", "undelete", "add", "append", "touch"}

// wrong is a little text cache with one seeded bug.
type wrong struct {
	bug   string
	lock  sync.Mutex
	items map[string]*wrongItem
	next  uint64
}

type wrongItem struct {
	value, before string
	unique        uint64
}

func startWrong(bug string) string {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	w := &wrong{bug: bug, items: map[string]*wrongItem{}}
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go w.serve(conn)
		}
	}()
	return listener.Addr().String()
}

func (w *wrong) serve(conn net.Conn) {
	defer conn.Close()
	in := bufio.NewReader(conn)
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			return
		}
		words := strings.Fields(line)
		data := ""
		switch words[0] {
		case "set", "add", "append", "prepend", "cas":
			n, _ := strconv.Atoi(words[4])
			block := make([]byte, n+2)
			if _, err := io.ReadFull(in, block); err != nil {
				return
			}
			data = string(block[:n])
		}
		conn.Write([]byte(w.run(words, data) + "\r\n"))
	}
}

// strikes says whether the bug of that name shows this time.
func (w *wrong) strikes(bug string) bool {
	return w.bug == bug && rand.Intn(4) == 0
}

func (w *wrong) put(key, value string) string {
	before := ""
	if old := w.items[key]; old != nil {
		before = old.value
	}
	w.next++
	w.items[key] = &wrongItem{value: value, before: before, unique: w.next}
	return "STORED"
}

func (w *wrong) run(words []string, data string) string {
	w.lock.Lock()
	defer w.lock.Unlock()
	key := words[1]
	it := w.items[key]
	switch words[0] {
	case "set":
		return w.put(key, data)
	case "add":
		if it != nil && !w.strikes("add") {
			return "NOT_STORED"
		}
		return w.put(key, data)
	}
	if it == nil {
		switch words[0] {
		case "get", "gets":
			return "END"
		case "append", "prepend":
			return "NOT_STORED"
		}
		return "NOT_FOUND"
	}
	return w.present(words, key, data, it)
}

func (w *wrong) present(words []string, key, data string, it *wrongItem) string {
	switch words[0] {
	case "get", "gets":
		value := it.value
		if it.before != "" && w.strikes("stale") {
			value = it.before
		}
		unique := ""
		if words[0] == "gets" {
			unique = fmt.Sprintf(" %d", it.unique)
		}
		return fmt.Sprintf("VALUE %s 0 %d%s\r\n%s\r\nEND", key, len(value), unique, value)
	case "append":
		if w.strikes("append") {
			return "STORED"
		}
		return w.put(key, it.value+data)
	case "prepend":
		return w.put(key, data+it.value)
	case "cas":
		unique, _ := strconv.ParseUint(words[5], 10, 64)
		if unique != it.unique && !w.strikes("cas") {
			return "EXISTS"
		}
		return w.put(key, data)
	case "delete":
		if !w.strikes("undelete") {
			delete(w.items, key)
		}
		return "DELETED"
	case "touch":
		if w.strikes("touch") {
			delete(w.items, key)
		}
		return "TOUCHED"
	}
	return w.count(words, key, it)
}

func (w *wrong) count(words []string, key string, it *wrongItem) string {
	number, err := strconv.ParseUint(it.value, 10, 64)
	if err != nil {
		return "CLIENT_ERROR cannot increment or decrement non-numeric value"
	}
	delta, _ := strconv.ParseUint(words[2], 10, 64)
	if w.strikes("incr") { // not atomic
		w.lock.Unlock()
		for i := 0; i < 20; i++ {
			runtime.Gosched()
		}
		w.lock.Lock()
	}
	if words[0] == "incr" {
		number += delta
	} else if number < delta {
		number = 0
	} else {
		number -= delta
	}
	text := strconv.FormatUint(number, 10)
	w.put(key, text)
	return text
}
