// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 the memcached-qos authors
// scripts/clients/spymemcached-client runs this against a server: text, then binary, pipelined.
import java.net.InetSocketAddress;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import net.spy.memcached.CASResponse;
import net.spy.memcached.CASValue;
import net.spy.memcached.ConnectionFactory;
import net.spy.memcached.ConnectionFactoryBuilder;
import net.spy.memcached.MemcachedClient;
import net.spy.memcached.auth.AuthDescriptor;
import net.spy.memcached.auth.PlainCallbackHandler;

public class Spy {
    static void check(String what, Object got, Object want) {
        if (got == null ? want != null : !got.equals(want)) {
            System.out.println("spymemcached-client: " + what + ": got " + got + ", not " + want);
            System.exit(1);
        }
    }

    static void run(String name, ConnectionFactory factory, InetSocketAddress address) throws Exception {
        MemcachedClient c = new MemcachedClient(factory, Arrays.asList(address));
        check(name + " flush", c.flush().get(), true);
        check(name + " get of nothing", c.get("a"), null);
        check(name + " set", c.set("a", 100, "one").get(), true);
        check(name + " get", c.get("a"), "one");
        check(name + " add", c.add("a", 0, "x").get(), false);
        check(name + " replace", c.replace("nix", 0, "x").get(), false);
        CASValue<Object> held = c.gets("a");
        check(name + " append", c.append(held.getCas(), "a", "+").get(), true);
        check(name + " get", c.get("a"), "one+");
        held = c.gets("a");
        check(name + " cas", c.cas("a", held.getCas(), "new"), CASResponse.OK);
        check(name + " cas again", c.cas("a", held.getCas(), "newer"), CASResponse.EXISTS);
        check(name + " incr makes", c.incr("n", 5, 10L), 10L);
        check(name + " incr", c.incr("n", 5), 15L);
        check(name + " decr", c.decr("n", 16), 0L);
        check(name + " touch", c.touch("a", 200).get(), true);
        byte[] large = new byte[500000];
        new Random(1).nextBytes(large);
        check(name + " large", c.set("large", 0, large).get(), true);
        check(name + " large", Arrays.equals((byte[]) c.get("large"), large), true);
        List<Future<Boolean>> sets = new ArrayList<>();
        Map<String, Object> want = new HashMap<>();
        for (int i = 0; i < 2000; i++) {
            sets.add(c.set("m" + i, 0, "" + i));
            want.put("m" + i, "" + i);
        }
        for (Future<Boolean> set : sets) {
            check(name + " pipelined set", set.get(20, TimeUnit.SECONDS), true);
        }
        List<Future<Object>> gets = new ArrayList<>();
        for (int i = 0; i < 2000; i++) {
            gets.add(c.asyncGet("m" + i));
        }
        for (int i = 0; i < 2000; i++) {
            check(name + " pipelined get", gets.get(i).get(20, TimeUnit.SECONDS), "" + i);
        }
        check(name + " bulk", c.getBulk(want.keySet()), want);
        check(name + " delete", c.delete("a").get(), true);
        check(name + " stats", c.getStats().size(), 1);
        check(name + " version", c.getVersions().size(), 1);
        c.shutdown(5, TimeUnit.SECONDS);
    }

    public static void main(String[] args) throws Exception {
        java.util.logging.LogManager.getLogManager().reset();
        System.setProperty("net.spy.log.LoggerImpl", "net.spy.memcached.compat.log.SunLogger");
        InetSocketAddress address = new InetSocketAddress(args[0], Integer.parseInt(args[1]));
        ConnectionFactoryBuilder builder = new ConnectionFactoryBuilder().setOpTimeout(20000);
        ConnectionFactoryBuilder.Protocol binary = ConnectionFactoryBuilder.Protocol.BINARY;
        if (args.length > 2) {
            AuthDescriptor plain = new AuthDescriptor(new String[] {"PLAIN"},
                new PlainCallbackHandler(args[2], args[3]));
            run("with a password", builder.setProtocol(binary).setAuthDescriptor(plain).build(), address);
        } else {
            run("text", builder.build(), address);
            run("binary", builder.setProtocol(binary).build(), address);
        }
        System.out.println("spymemcached-client: ok" + (args.length > 2 ? ", with a password" : ""));
        System.exit(0);
    }
}
