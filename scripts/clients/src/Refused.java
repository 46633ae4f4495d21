// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 the memcached-qos authors
// scripts/clients/refused runs this: the calls of spymemcached, with the words of getStatus()
// where there is a future. usage: Refused VERSION VARIANT TIMEOUT HOST PORT
import java.net.InetSocketAddress;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import net.spy.memcached.ConnectionFactoryBuilder;
import net.spy.memcached.ConnectionFactoryBuilder.Protocol;
import net.spy.memcached.MemcachedClient;
import net.spy.memcached.internal.OperationFuture;

public class Refused {
    interface Call {
        Object of(MemcachedClient c) throws Exception;
    }

    static Object withStatus(OperationFuture<Boolean> future) throws Exception {
        return future.get() + ", " + future.getStatus().getMessage();
    }

    static String said(Callable<Object> call) {
        try {
            return String.valueOf(call.call());
        } catch (Exception e) {
            Throwable cause = e instanceof ExecutionException ? e.getCause() : e;
            while (cause.getCause() != null) {
                cause = cause.getCause();
            }
            return e.getClass().getSimpleName() + (cause == e ? "" : " of " + cause.getClass().getSimpleName())
                + ": " + cause.getMessage();
        }
    }

    public static void main(String[] args) throws Exception {
        java.util.logging.LogManager.getLogManager().reset();
        System.setProperty("net.spy.log.LoggerImpl", "net.spy.memcached.compat.log.SunLogger");
        String version = args[0], variant = args[1];
        int timeout = Integer.parseInt(args[2]);
        InetSocketAddress address = new InetSocketAddress(args[3], Integer.parseInt(args[4]));
        String name = "spymemcached " + version + ", " + variant;
        Callable<MemcachedClient> make = () -> new MemcachedClient(new ConnectionFactoryBuilder()
            .setProtocol(Protocol.valueOf(variant.toUpperCase())).setOpTimeout(timeout * 1000L).build(),
            Arrays.asList(address));
        Map<String, Call> calls = new LinkedHashMap<>();
        calls.put("get", c -> c.get("g"));
        calls.put("get_multi", c -> {
            try {
                return new TreeMap<>(c.getBulk("m1", "m2"));
            } catch (RuntimeException e) { // which one depends on the library's threads
                return "RuntimeException of OperationException, or CancellationException";
            }
        });
        calls.put("set", c -> withStatus(c.set("s", 0, "2")));
        calls.put("incr", c -> c.incr("n", 1));
        calls.put("delete", c -> withStatus(c.delete("d")));
        for (Map.Entry<String, Call> call : calls.entrySet()) {
            MemcachedClient client = make.call();
            System.out.println(name + "\t" + call.getKey() + "\t" + said(() -> call.getValue().of(client)));
        }
        MemcachedClient kept = make.call();
        for (int i = 0; i < 5; i++) {
            said(() -> kept.get("g"));
        }
        System.out.println("ready");
        System.in.read();
        System.out.println(name + "\tthen\t" + said(() -> kept.get("g")));
        System.exit(0);
    }
}
