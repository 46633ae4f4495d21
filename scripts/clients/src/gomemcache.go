// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 the memcached-qos authors

// scripts/clients/gomemcache-client runs this against a server.
package main

import (
	"bytes"
	"fmt"
	"math/rand"
	"os"
	"sync"
	"time"

	"github.com/bradfitz/gomemcache/memcache"
)

func check(what string, got, want any) {
	if fmt.Sprint(got) != fmt.Sprint(want) {
		fmt.Printf("gomemcache-client: %s: got %.200v, not %.200v\n", what, got, want)
		os.Exit(1)
	}
}

func main() {
	c := memcache.New(os.Args[1] + ":" + os.Args[2])
	c.Timeout = 20 * time.Second
	c.MaxIdleConns = 16
	value := func(key string) string {
		it, err := c.Get(key)
		if err != nil {
			return err.Error()
		}
		return string(it.Value)
	}
	check("ping", c.Ping(), nil)
	check("flush", c.FlushAll(), nil)
	check("get of nothing", value("a"), memcache.ErrCacheMiss)
	check("set", c.Set(&memcache.Item{Key: "a", Value: []byte("one"), Flags: 7}), nil)
	check("get", value("a"), "one")
	check("add", c.Add(&memcache.Item{Key: "a", Value: []byte("x")}), memcache.ErrNotStored)
	check("replace", c.Replace(&memcache.Item{Key: "nix", Value: []byte("x")}), memcache.ErrNotStored)
	check("append", c.Append(&memcache.Item{Key: "a", Value: []byte("+")}), nil)
	check("prepend", c.Prepend(&memcache.Item{Key: "a", Value: []byte("-")}), nil)
	check("get", value("a"), "-one+")
	held, err := c.Get("a")
	check("get", err, nil)
	check("flags", held.Flags, 7)
	held.Value = []byte("new")
	check("cas", c.CompareAndSwap(held), nil)
	check("cas again", c.CompareAndSwap(held), memcache.ErrCASConflict)
	check("get", value("a"), "new")
	check("set", c.Set(&memcache.Item{Key: "n", Value: []byte("10")}), nil)
	n, err := c.Increment("n", 5)
	check("incr", fmt.Sprint(n, err), "15 <nil>")
	n, err = c.Decrement("n", 16)
	check("decr", fmt.Sprint(n, err), "0 <nil>")
	check("touch", c.Touch("a", 100), nil)
	check("touch of nothing", c.Touch("nix", 100), memcache.ErrCacheMiss)
	check("expired at once", c.Set(&memcache.Item{Key: "e", Value: []byte("x"), Expiration: -1}), nil)
	check("get", value("e"), memcache.ErrCacheMiss)
	large := make([]byte, 500000)
	rand.New(rand.NewSource(1)).Read(large)
	check("large", c.Set(&memcache.Item{Key: "large", Value: large}), nil)
	check("large", bytes.Equal([]byte(value("large")), large), true)
	var all sync.WaitGroup
	for g := 0; g < 16; g++ {
		all.Add(1)
		go func(g int) {
			defer all.Done()
			for i := 0; i < 100; i++ {
				key, want := fmt.Sprintf("m%d.%d", g, i), fmt.Sprint(g*i)
				check("set", c.Set(&memcache.Item{Key: key, Value: []byte(want)}), nil)
				check("get", value(key), want)
			}
		}(g)
	}
	all.Wait()
	keys := []string{}
	for i := 0; i < 300; i++ {
		keys = append(keys, fmt.Sprintf("m3.%d", i))
	}
	many, err := c.GetMulti(keys)
	check("multi", fmt.Sprint(len(many), err), "100 <nil>")
	check("delete", c.Delete("a"), nil)
	check("delete again", c.Delete("a"), memcache.ErrCacheMiss)
	fmt.Println("gomemcache-client: ok")
}
