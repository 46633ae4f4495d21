// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 the memcached-qos authors

package main

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/anishathalye/porcupine"
)

// input is one request.
type input struct {
	verb, key, value string
	delta            uint64
	unique           uint64
}

func (in input) isRead() bool { return in.verb == "get" || in.verb == "gets" }

// output is one answer.
type output struct {
	unknown bool   // the connection ended first
	status  string // STORED, NOT_STORED, EXISTS, NOT_FOUND, DELETED, TOUCHED, HIT, MISS, NUMBER, TEXT
	value   string
	unique  uint64
}

// state is a key's item. The unique is known only once a gets has told it: 0 before.
type state struct {
	present bool
	value   string
	unique  uint64
}

// model is one key of a cache. With evict an item may be gone whenever it is looked for.
func model(evict bool) porcupine.Model {
	m := porcupine.NondeterministicModel{
		Partition: func(history []porcupine.Operation) [][]porcupine.Operation {
			byKey := map[string][]porcupine.Operation{}
			for _, op := range history {
				key := op.Input.(input).key
				byKey[key] = append(byKey[key], op)
			}
			var parts [][]porcupine.Operation
			for _, part := range byKey {
				parts = append(parts, part)
			}
			return parts
		},
		Init: func() []any { return []any{state{}} },
		Step: func(s, in, out any) []any {
			var next []any
			for _, end := range step(s.(state), in.(input), out.(output)) {
				next = append(next, end)
			}
			if evict && s.(state).present {
				for _, end := range step(state{}, in.(input), out.(output)) {
					next = append(next, end)
				}
			}
			return next
		},
		Equal: func(a, b any) bool { return a == b },
		DescribeOperation: func(in, out any) string {
			i, o := in.(input), out.(output)
			text := fmt.Sprintf("%s %q delta %d unique %d", i.verb, i.value, i.delta, i.unique)
			if o.unknown {
				return text + " -> answer lost"
			}
			return fmt.Sprintf("%s -> %s %q unique %d", text, o.status, o.value, o.unique)
		},
	}
	return m.ToModel()
}

// step returns the states after a request with that answer; none if it is impossible.
func step(s state, in input, out output) []state {
	if in.isRead() {
		return read(s, in, out)
	}
	want, after := apply(s, in)
	if out.unknown {
		return []state{s, after} // it did not happen, or it did
	}
	if out.status != want.status || strings.TrimRight(out.value, " ") != want.value {
		return nil
	}
	return []state{after}
}

func read(s state, in input, out output) []state {
	if out.status == "MISS" {
		if s.present {
			return nil
		}
		return []state{s}
	}
	// A number that became shorter is padded with blanks.
	if !s.present || strings.TrimRight(out.value, " ") != strings.TrimRight(s.value, " ") {
		return nil
	}
	if in.verb == "gets" {
		if s.unique != 0 && s.unique != out.unique {
			return nil
		}
		s.unique = out.unique
	}
	s.value = out.value
	return []state{s}
}

// apply is the single-threaded cache: the answer and the item afterwards.
func apply(s state, in input) (output, state) {
	stored := output{status: "STORED"}
	fresh := state{present: true, value: in.value}
	switch in.verb {
	case "set":
		return stored, fresh
	case "add":
		if s.present {
			return output{status: "NOT_STORED"}, s
		}
		return stored, fresh
	case "append", "prepend":
		if !s.present {
			return output{status: "NOT_STORED"}, s
		}
		if in.verb == "append" {
			return stored, state{present: true, value: s.value + in.value}
		}
		return stored, state{present: true, value: in.value + s.value}
	case "cas":
		if !s.present {
			return output{status: "NOT_FOUND"}, s
		}
		// A unique that no gets has told is not the one that a client has.
		if s.unique != 0 && s.unique == in.unique {
			return stored, fresh
		}
		return output{status: "EXISTS"}, s
	case "delete":
		if !s.present {
			return output{status: "NOT_FOUND"}, s
		}
		return output{status: "DELETED"}, state{}
	case "touch":
		if !s.present {
			return output{status: "NOT_FOUND"}, s
		}
		return output{status: "TOUCHED"}, s
	}
	if !s.present {
		return output{status: "NOT_FOUND"}, s
	}
	number, err := strconv.ParseUint(strings.TrimRight(s.value, " "), 10, 64)
	if err != nil {
		return output{status: "TEXT"}, s
	}
	if in.verb == "incr" {
		number += in.delta
	} else if number < in.delta {
		number = 0
	} else {
		number -= in.delta
	}
	text := strconv.FormatUint(number, 10)
	return output{status: "NUMBER", value: text}, state{present: true, value: text}
}
