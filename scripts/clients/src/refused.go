// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 the memcached-qos authors

// scripts/clients/refused runs this: the calls of gomemcache. usage:
// refused VARIANT TIMEOUT HOST PORT
package main

import (
	"bufio"
	"fmt"
	"os"
	"runtime/debug"
	"time"

	"github.com/bradfitz/gomemcache/memcache"
)

func said(value any, err error) string {
	if err == nil {
		return fmt.Sprint(value)
	}
	return "error " + err.Error()
}

func get(c *memcache.Client) string {
	item, err := c.Get("g")
	if err != nil {
		return said(nil, err)
	}
	return said(string(item.Value), nil)
}

func main() {
	timeout, _ := time.ParseDuration(os.Args[2] + "s")
	client := func() *memcache.Client {
		c := memcache.New(os.Args[3] + ":" + os.Args[4])
		c.Timeout = timeout
		return c
	}
	name := "gomemcache"
	if build, ok := debug.ReadBuildInfo(); ok {
		for _, module := range build.Deps {
			if module.Path == "github.com/bradfitz/gomemcache" && len(module.Version) > 7 {
				name += " " + module.Version[len(module.Version)-12:][:7]
			}
		}
	}
	show := func(call, result string) { fmt.Printf("%s\t%s\t%s\n", name, call, result) }
	show("get", get(client()))
	many, err := client().GetMulti([]string{"m1", "m2"})
	found := map[string]string{}
	for key, item := range many {
		found[key] = string(item.Value)
	}
	show("get_multi", said(found, err))
	show("set", said(nil, client().Set(&memcache.Item{Key: "s", Value: []byte("2")})))
	n, err := client().Increment("n", 1)
	show("incr", said(n, err))
	show("delete", said(nil, client().Delete("d")))
	kept := client()
	for i := 0; i < 5; i++ {
		get(kept)
	}
	fmt.Println("ready")
	bufio.NewReader(os.Stdin).ReadString('\n')
	show("then", get(kept))
}
