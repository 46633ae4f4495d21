// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 the memcached-qos authors

// Linear runs short concurrent histories of get, gets, set, add, cas, append, prepend, incr,
// decr, delete and touch against a server, with connections that are cut while requests are
// under way and with eviction, and has Porcupine search each for an order of the requests, one
// key at a time, in which a single-threaded cache would have given the same answers.
//
// A request whose answer was lost may have happened at any later time or never. A cache may
// lose an item at any time: with -evict a miss is allowed at any point, and from then on the
// item is gone; without it no item may go away by itself.
//
// Exit status: 0 all histories are linearizable, 1 one is not (it is printed), 2 usage.
package main

import (
	"bufio"
	"flag"
	"fmt"
	"math/rand"
	"net"
	"os"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/anishathalye/porcupine"
)

// Between two batches of items that push others out: often enough, and time is left for the rest.
const (
	fillPause = 2 * time.Millisecond
	fillBatch = 500
	fillSame  = 40 * fillBatch // items of one size
)

// A history of some lost answers has many orders: nobody waits for that one, on a busy machine either.
const searching = 10 * time.Minute

func main() {
	server := flag.String("server", "127.0.0.1:11211", "host:port")
	histories := flag.Int("histories", 200, "number of histories")
	clients := flag.Int("clients", 5, "concurrent clients")
	requests := flag.Int("requests", 30, "requests of a client in a history")
	keys := flag.Int("keys", 3, "keys of a history")
	seed := flag.Int64("seed", 1, "of the requests")
	together := flag.Int("together", 2*runtime.NumCPU(), "histories at a time, each with keys of its own")
	evict := flag.Bool("evict", false, "items may go at any time; fill the memory meanwhile")
	upset := flag.Bool("upset", false, "with -evict: fill with several sizes, flush, move pages, change the limit")
	binary := flag.Bool("binary", false, "every second client speaks the binary protocol")
	wrong := flag.Bool("wrong", false, "check the checker: caches with a bug, of its own making")
	flag.Parse()
	if *wrong {
		os.Exit(selfTest(*histories, *seed))
	}
	stop := make(chan bool)
	var others sync.WaitGroup
	if *evict {
		others.Add(1)
		go beside(*server, stop, &others, fill(*upset))
	}
	if *upset {
		others.Add(1)
		go beside(*server, stop, &others, disturb)
	}
	total, lost := 0, 0
	var (
		all  sync.WaitGroup
		lock sync.Mutex // of the sums, and of what is printed before the end
	)
	numbers := make(chan int)
	for i := 0; i < *together; i++ {
		all.Add(1)
		go func() {
			defer all.Done()
			for h := range numbers {
				ops, lostHere := history(*server, h, *clients, *requests, *keys, *seed, *binary)
				result, info := porcupine.CheckOperationsVerbose(model(*evict), ops, searching)
				lock.Lock()
				total += len(ops)
				lost += lostHere
				switch result {
				case porcupine.Illegal:
					report(h, *seed, ops, info, *evict)
					os.Exit(1)
				case porcupine.Unknown:
					fmt.Printf("history %d (seed %d): not decided in %s\n", h, *seed, searching)
					os.Exit(1)
				}
				lock.Unlock()
			}
		}()
	}
	for h := 0; h < *histories; h++ {
		numbers <- h
	}
	close(numbers)
	all.Wait()
	close(stop)
	others.Wait()
	if lost*2 > total {
		fmt.Printf("%d answers of %d were lost: is the server there?\n", lost, total)
		os.Exit(1)
	}
	fmt.Printf("%d histories are linearizable: %d requests, %d answers lost\n", *histories, total, lost)
}

// selfTest has the checker look at caches with a seeded bug, each of which it must find.
func selfTest(histories int, seed int64) int {
	status := 0
	for _, bug := range bugs {
		server := startWrong(bug)
		found := -1
		for h := 0; h < histories && found < 0; h++ {
			ops, _ := history(server, h, 5, 30, 3, seed, false)
			if !porcupine.CheckOperations(model(false), ops) {
				found = h
			}
		}
		fmt.Printf("bug %-9s found in history %d\n", bug, found)
		if (found >= 0) != (bug != "none") {
			status = 1
		}
	}
	return status
}

// history lets the clients loose on fresh keys and returns what they saw.
func history(server string, h, clients, requests, keys int, seed int64, binary bool) ([]porcupine.Operation, int) {
	start := time.Now()
	names := make([]string, keys)
	for i := range names {
		names[i] = fmt.Sprintf("linear.%d.%d.%d", seed, h, i)
	}
	var (
		all  sync.WaitGroup
		lock sync.Mutex
		ops  []porcupine.Operation
		lost int
	)
	for id := 0; id < clients; id++ {
		all.Add(1)
		go func(id int) {
			defer all.Done()
			rng := rand.New(rand.NewSource(seed<<32 + int64(h)<<8 + int64(id)))
			c := &client{server: server, binary: binary && id%2 == 1, rng: rng, unique: map[string]uint64{}}
			defer c.close()
			for i := 0; i < requests; i++ {
				in := c.choose(names, id, i)
				if rng.Float64() < 0.02 {
					c.cut = true
				}
				call := time.Since(start).Nanoseconds()
				out := c.do(in)
				back := time.Since(start).Nanoseconds()
				if out.unknown {
					back = 1 << 62 // may take effect at any time
				}
				lock.Lock()
				if out.unknown {
					lost++
				}
				if !(out.unknown && in.isRead()) {
					ops = append(ops, porcupine.Operation{ClientId: id, Input: in, Call: call, Output: out, Return: back})
				}
				lock.Unlock()
				if out.unknown {
					// The client is gone; its successor is another one.
					id += clients
				}
			}
		}(id)
	}
	all.Wait()
	return ops, lost
}

// beside sends the requests, each answered by a line, until the test is over.
func beside(server string, stop chan bool, done *sync.WaitGroup, request func(i int) string) {
	defer done.Done()
	conn, err := net.Dial("tcp", server)
	if err != nil {
		return
	}
	defer conn.Close()
	in := bufio.NewReader(conn)
	for i := 0; ; i++ {
		select {
		case <-stop:
			return
		default:
		}
		if _, err := conn.Write([]byte(request(i))); err != nil {
			return
		}
		if _, err := in.ReadString('\n'); err != nil {
			return
		}
		time.Sleep(fillPause)
	}
}

// fill stores other items of the same size, so that some are evicted; with several sizes by turns,
// so that pages have to move.
func fill(several bool) func(int) string {
	return func(batch int) string {
		text := ""
		for i := batch * fillBatch; i < (batch+1)*fillBatch; i++ {
			value := "filler"
			if several {
				value = strings.Repeat(value, []int{1, 1, 20, 100}[i/fillSame%4])
			}
			text += fmt.Sprintf("set fill%d 0 0 %d noreply\r\n%s\r\n", i, len(value), value)
		}
		return text + "get nix\r\n"
	}
}

// disturb flushes, moves pages and changes the limit.
func disturb(i int) string {
	switch {
	case i%33 == 0:
		return "flush_all\r\n"
	case i%5 == 0:
		return fmt.Sprintf("cache_memlimit %d\r\n", 16+i%2*16)
	}
	return fmt.Sprintf("slabs reassign -1 %d\r\n", i%3)
}

func report(h int, seed int64, ops []porcupine.Operation, info porcupine.LinearizationInfo, evict bool) {
	fmt.Printf("history %d (seed %d) is not linearizable; its keys that are not:\n", h, seed)
	byKey := map[string][]porcupine.Operation{}
	for _, op := range ops {
		key := op.Input.(input).key
		byKey[key] = append(byKey[key], op)
	}
	m := model(evict)
	for key, part := range byKey {
		if porcupine.CheckOperations(m, part) {
			continue
		}
		for _, op := range part {
			fmt.Printf("  %12d-%12d client %2d %s %s\n", op.Call, op.Return, op.ClientId, key,
				m.DescribeOperation(op.Input, op.Output))
		}
	}
	if name := os.Getenv("LINEAR_PAGE"); name != "" {
		if f, err := os.Create(name); err == nil {
			porcupine.Visualize(m, info, f)
			f.Close()
			fmt.Println("drawn in", name)
		}
	}
}
