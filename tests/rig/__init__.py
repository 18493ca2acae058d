"""The test rig of tests, bench and demo: a disposable real Central, a counting fault proxy, shims, private daemons."""
