<?php
// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 the memcached-qos authors
//
// scripts/clients/refused runs this: the calls of PHP's memcached (libmemcached), with the
// words of getResultMessage() behind what is false. usage: refused.php VARIANT TIMEOUT HOST PORT
if (!class_exists('Memcached')) {
    exit(77);
}

[, $variant, $timeout, $host, $port] = $argv;
$name = 'PHP memcached ' . phpversion('memcached') . ", $variant";
$make = function () use ($variant, $timeout, $host, $port) {
    $c = new Memcached();
    $c->setOption(Memcached::OPT_BINARY_PROTOCOL, $variant === 'binary');
    $c->setOption(Memcached::OPT_POLL_TIMEOUT, $timeout * 1000);
    $c->addServer($host, (int)$port);
    return $c;
};

function said($client, $call)
{
    try {
        $value = $call($client);
    } catch (Throwable $e) {
        return get_class($e) . ': ' . $e->getMessage();
    }
    $text = is_array($value) ? ($value ? json_encode($value) : '[]') : var_export($value, true);
    $is_told = $value === false || $value === [];
    return $text . ($is_told ? ', ' . $client->getResultMessage() : '');
}

$calls = [
    'get' => function ($c) { return $c->get('g'); },
    'get_multi' => function ($c) { return $c->getMulti(['m1', 'm2']); },
    'set' => function ($c) { return $c->set('s', '2'); },
    'incr' => function ($c) { return $c->increment('n', 1); },
    'delete' => function ($c) { return $c->delete('d'); },
];
foreach ($calls as $call => $function) {
    echo "$name\t$call\t", said($make(), $function), "\n";
}
$kept = $make();
for ($i = 0; $i < 5; $i++) {
    said($kept, $calls['get']);
}
echo "ready\n";
fgets(STDIN);
echo "$name\tthen\t", said($kept, $calls['get']), "\n";
