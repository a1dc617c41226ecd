# Fails: the caller sees the exit status and the end of standard error.

run() {
    echo "the disk is on fire" >&2
    exit 3
}
