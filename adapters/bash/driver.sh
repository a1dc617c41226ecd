# What a warm bash runs: it sources the function's file once, and forks one
# subshell a call. Neither the handler's name nor a payload is ever evaluated.
#
# The channels are files of the server, reached as /proc/$PPID/fd/N and opened
# only for as long as they are used: user code inherits none of them.
#
#   control  one line a call, its number and the invocation's ID, read by the
#            subshell that waits
#   status   "loaded LEFT", "syntax", "sourced STATUS" or "no-function"; then, for
#            each call, "waits CALL" from the subshell and "ended CALL STATUS
#            LEFT" from its parent; LEFT is 1 where processes may be left. After
#            "loaded" and "ended" the line "on" on control is waited for
#   payload, output, errors   of the call
builtin readonly __hearth_file=$1 __hearth_function=$2 __hearth_fd=/proc/$PPID/fd
builtin readonly __hearth_control=$3 __hearth_status=$4 __hearth_payload=$5 __hearth_output=$6 __hearth_errors=$7
builtin readonly __hearth_home=$8
builtin set --

# Bytes are read three times as fast as characters.
__hearth_read() {
  builtin local LC_ALL=C
  builtin mapfile -d '' -n 1 -t __hearth_input <"$__hearth_fd/$__hearth_payload"
}

# At the top level, so that what the file declares is global; not in a condition,
# so that its "set -e" means what it says.
builtin source "$__hearth_file"
__hearth_sourced=$?

# The file's options belong to its calls, not to this loop.
__hearth_options=()
for __hearth_option in allexport errexit errtrace functrace noclobber noglob nounset physical pipefail posix xtrace; do
  [[ -o $__hearth_option ]] || builtin continue
  __hearth_options+=(-o "$__hearth_option")
  builtin set +o "$__hearth_option"
done 2>/dev/null
builtin unset __hearth_option
builtin trap - DEBUG ERR EXIT RETURN

if ((__hearth_sourced)); then
  # It has said by then what it does not understand; whether that was it, is asked
  # only now: the question costs a process.
  if ! "$BASH" -n "$__hearth_file" 2>/dev/null; then
    builtin echo syntax >"$__hearth_fd/$__hearth_status"
    builtin exit 2
  fi
  builtin echo "sourced $__hearth_sourced" >"$__hearth_fd/$__hearth_status"
  builtin exit 2
fi
if ! builtin declare -F -- "$__hearth_function" >/dev/null; then
  builtin echo no-function >"$__hearth_fd/$__hearth_status"
  builtin exit 2
fi

# Says in __hearth_left whether there may be processes beside this one, and kills
# them: what a call has left must not have the time to write on. The server then
# makes sure of it, which a list cannot. Without a cgroup only it can look.
__hearth_thin() {
  __hearth_left=1
  [[ $__hearth_home ]] || builtin return
  __hearth_left=0
  builtin mapfile -t __hearth_pids <"$__hearth_home/cgroup.procs"
  ((${#__hearth_pids[@]} > 1)) || builtin return
  __hearth_left=1
  for __hearth_pid in "${__hearth_pids[@]}"; do
    ((__hearth_pid == $$)) || builtin kill -KILL "$__hearth_pid"
  done
}
__hearth_go_on() {
  while builtin read -r __hearth_line <"$__hearth_fd/$__hearth_control"; do
    [[ $__hearth_line != on ]] || builtin break
  done
}

exec >/dev/null 2>&1
__hearth_thin
builtin echo "loaded $__hearth_left" >"$__hearth_fd/$__hearth_status"
__hearth_go_on

__hearth_call=0
while :; do
  __hearth_call=$((__hearth_call + 1))
  # Job control gives the subshell a process group of its own. It is off while it
  # is waited for: else one that stops would count as ended, and "wait -f", which
  # is meant for that, reads freed memory in bash 5.2 and sometimes never returns.
  builtin set -m
  (
    exec >"$__hearth_fd/$__hearth_output" 2>"$__hearth_fd/$__hearth_errors"
    builtin echo "waits $__hearth_call" >"$__hearth_fd/$__hearth_status"
    # A line for another call was meant for one that was killed before it read it.
    # The end of the pipe is the end of the server.
    while :; do
      IFS= builtin read -r HEARTH_INVOCATION_ID <"$__hearth_fd/$__hearth_control" || builtin kill -KILL $$ $BASHPID
      [[ $HEARTH_INVOCATION_ID != "$__hearth_call "* ]] || builtin break
    done
    builtin export HEARTH_INVOCATION_ID=${HEARTH_INVOCATION_ID#* }
    __hearth_read
    ((${#__hearth_options[@]} == 0)) || builtin set "${__hearth_options[@]}"
    # Straight from where it was read: each copy of 1 MiB costs milliseconds.
    "$__hearth_function" "${__hearth_input[0]-}"
  ) &
  builtin set +m
  builtin wait $!
  __hearth_ended=$?
  __hearth_thin
  builtin echo "ended $__hearth_call $__hearth_ended $__hearth_left" >"$__hearth_fd/$__hearth_status"
  __hearth_go_on
done
