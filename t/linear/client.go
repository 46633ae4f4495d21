// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 the memcached-qos authors

package main

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"math/rand"
	"net"
	"strconv"
	"strings"
	"time"
)

const patience = 30 * time.Second

// client sends one request at a time, in text or in the binary protocol.
type client struct {
	server string
	binary bool
	cut    bool // the connection is closed behind the next request
	rng    *rand.Rand
	conn   net.Conn
	in     *bufio.Reader
	unique map[string]uint64 // the last one seen of each key
}

var (
	verbs     = []string{"get", "get", "get", "gets", "gets", "set", "set", "add", "cas", "cas", "incr", "incr", "delete", "touch"}
	noBlanks  = []string{"append", "prepend"}
	mayShrink = []string{"decr"}
)

// choose makes up the next request. A history has decr, which may leave blanks behind a number,
// or append and prepend, which would show them, but not both.
func (c *client) choose(names []string, id, i int) input {
	key := names[c.rng.Intn(len(names))]
	in := input{key: key, delta: uint64(1 + c.rng.Intn(9))}
	more := noBlanks
	if key[len(key)-1]%2 == 0 {
		more = mayShrink
	}
	n := c.rng.Intn(len(verbs) + len(more))
	if n < len(verbs) {
		in.verb = verbs[n]
	} else {
		in.verb = more[n-len(verbs)]
	}
	in.unique = c.unique[key]
	if in.verb == "cas" && in.unique == 0 {
		in.verb = "gets"
	}
	switch in.verb {
	case "set", "add", "cas":
		in.value = strconv.Itoa(10000*(id+1) + i)
		if c.rng.Intn(3) == 0 {
			in.value = "v" + in.value
		}
	case "append", "prepend":
		in.value = string(rune('a' + c.rng.Intn(26)))
	}
	return in
}

func (c *client) close() {
	if c.conn != nil {
		c.conn.Close()
		c.conn = nil
	}
}

// do sends a request and returns its answer; unknown when the connection ended first.
func (c *client) do(in input) output {
	if c.conn == nil {
		conn, err := net.DialTimeout("tcp", c.server, patience)
		if err != nil {
			time.Sleep(10 * time.Millisecond)
			return output{unknown: true}
		}
		c.conn = conn
		c.in = bufio.NewReader(conn)
	}
	c.conn.SetDeadline(time.Now().Add(patience))
	request := encodeText(in)
	if c.binary {
		request = encodeBinary(in)
	}
	if c.cut {
		c.cut = false
		if c.rng.Intn(2) == 0 {
			request = request[:c.rng.Intn(len(request))]
		}
		c.conn.Write(request)
		c.close()
		return output{unknown: true}
	}
	out, err := output{}, error(nil)
	if _, err = c.conn.Write(request); err == nil {
		if c.binary {
			out, err = c.answerBinary(in)
		} else {
			out, err = c.answerText(in)
		}
	}
	if err != nil {
		c.close()
		return output{unknown: true}
	}
	if out.unique != 0 {
		c.unique[in.key] = out.unique
	}
	return out
}

// ---- text -------------------------------------------------------------------------------------

func encodeText(in input) []byte {
	switch in.verb {
	case "get", "gets", "delete":
		return []byte(in.verb + " " + in.key + "\r\n")
	case "incr", "decr":
		return []byte(fmt.Sprintf("%s %s %d\r\n", in.verb, in.key, in.delta))
	case "touch":
		return []byte("touch " + in.key + " 0\r\n")
	case "cas":
		return []byte(fmt.Sprintf("cas %s 0 0 %d %d\r\n%s\r\n", in.key, len(in.value), in.unique, in.value))
	}
	return []byte(fmt.Sprintf("%s %s 0 0 %d\r\n%s\r\n", in.verb, in.key, len(in.value), in.value))
}

func (c *client) answerText(in input) (output, error) {
	line, err := c.in.ReadString('\n')
	if err != nil {
		return output{}, err
	}
	line = strings.TrimRight(line, "\r\n")
	switch {
	case line == "END":
		return output{status: "MISS"}, nil
	case strings.HasPrefix(line, "VALUE "):
		words := strings.Fields(line)
		n, err := strconv.Atoi(words[3])
		if err != nil || words[1] != in.key {
			return output{}, fmt.Errorf("strange answer %q", line)
		}
		out := output{status: "HIT"}
		if len(words) > 4 {
			out.unique, _ = strconv.ParseUint(words[4], 10, 64)
		}
		data := make([]byte, n+len("\r\nEND\r\n"))
		if _, err := io.ReadFull(c.in, data); err != nil {
			return output{}, err
		}
		out.value = string(data[:n])
		return out, nil
	case strings.HasPrefix(line, "CLIENT_ERROR cannot increment"):
		return output{status: "TEXT"}, nil
	case line != "" && line[0] >= '0' && line[0] <= '9':
		return output{status: "NUMBER", value: line}, nil
	case strings.Contains(line, "ERROR"):
		return output{}, fmt.Errorf("%s", line) // such as no memory: what happened is unknown
	}
	return output{status: line}, nil
}

// ---- binary -----------------------------------------------------------------------------------

var opcodes = map[string]byte{"get": 0x00, "gets": 0x00, "set": 0x01, "cas": 0x01, "add": 0x02,
	"delete": 0x04, "incr": 0x05, "decr": 0x06, "append": 0x0e, "prepend": 0x0f, "touch": 0x1c}

func encodeBinary(in input) []byte {
	var extras []byte
	switch in.verb {
	case "set", "cas", "add":
		extras = make([]byte, 8)
	case "incr", "decr":
		extras = binary.BigEndian.AppendUint64(nil, in.delta)
		extras = append(extras, make([]byte, 8)...)
		extras = append(extras, 0xff, 0xff, 0xff, 0xff)
	case "touch":
		extras = make([]byte, 4)
	}
	header := make([]byte, 24)
	header[0], header[1], header[4] = 0x80, opcodes[in.verb], byte(len(extras))
	binary.BigEndian.PutUint16(header[2:], uint16(len(in.key)))
	binary.BigEndian.PutUint32(header[8:], uint32(len(extras)+len(in.key)+len(in.value)))
	if in.verb == "cas" {
		binary.BigEndian.PutUint64(header[16:], in.unique)
	}
	return append(append(append(header, extras...), in.key...), in.value...)
}

func (c *client) answerBinary(in input) (output, error) {
	header := make([]byte, 24)
	if _, err := io.ReadFull(c.in, header); err != nil {
		return output{}, err
	}
	body := make([]byte, binary.BigEndian.Uint32(header[8:]))
	if _, err := io.ReadFull(c.in, body); err != nil {
		return output{}, err
	}
	status := binary.BigEndian.Uint16(header[6:])
	if header[0] != 0x81 || header[1] != opcodes[in.verb] {
		return output{}, fmt.Errorf("strange answer % x", header)
	}
	if status != 0 {
		return binaryFailure(in, status)
	}
	switch in.verb {
	case "get", "gets":
		// The model learns a unique from gets only.
		out := output{status: "HIT", value: string(body[4:])}
		if in.verb == "gets" {
			out.unique = binary.BigEndian.Uint64(header[16:])
		}
		return out, nil
	case "incr", "decr":
		return output{status: "NUMBER", value: strconv.FormatUint(binary.BigEndian.Uint64(body), 10)}, nil
	case "delete":
		return output{status: "DELETED"}, nil
	case "touch":
		return output{status: "TOUCHED"}, nil
	}
	return output{status: "STORED"}, nil
}

func binaryFailure(in input, status uint16) (output, error) {
	switch {
	case status == 0x01 && in.isRead():
		return output{status: "MISS"}, nil
	case status == 0x01:
		return output{status: "NOT_FOUND"}, nil
	case status == 0x02 && in.verb == "add", status == 0x05:
		return output{status: "NOT_STORED"}, nil
	case status == 0x02:
		return output{status: "EXISTS"}, nil
	case status == 0x06:
		return output{status: "TEXT"}, nil
	}
	return output{}, fmt.Errorf("status %d", status)
}
