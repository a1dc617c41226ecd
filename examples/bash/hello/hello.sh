# Greets, and shows the payload as it came: it is one argument, never code.

greet() {
    echo "greeting somebody" >&2 # goes to the Run's log
    printf 'Hello from Bash! You sent: %s\n' "$1"
}
