# Looks up primes. The table is made once, when the Run is created: every call is
# a fork of the Bash that has it.

declare -A prime
for ((n = 2; n < 3000; n++)); do
    prime[$n]=1
    for ((d = 2; d * d <= n; d++)); do
        if ((n % d == 0)); then
            unset "prime[$n]"
            break
        fi
    done
done

lookup() {
    local n=${1//[^0-9]/}
    printf '{"n":%d,"prime":%s}\n' "$n" "$([[ ${prime[$n]-} ]] && echo true || echo false)"
}
