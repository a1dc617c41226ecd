# Adds the numbers in {"values": [...]}, with jq where it is installed.

add() {
    if command -v jq >/dev/null; then
        jq -c '{sum: (.values | add), with: "jq"}' <<<"$1"
        return
    fi
    local list=${1#*[} total=0 value
    list=${list%%]*}
    for value in ${list//,/ }; do
        total=$((total + value))
    done
    printf '{"sum":%d,"with":"bash"}\n' "$total"
}
