# It starts no Python: the names below are those of the certile that wrote it. Write it anew after an update.

# KIND [PROBLEM]: the words of a kind, of one problem if it is named.
_certile_words() {
  case "$1:$2" in
@WORDS@
  esac
}

# COMMAND OPTION-OR-PLACE: the kind of word that belongs there; nothing after a flag.
_certile_kind() {
  case "$1:$2" in
@KINDS@
  esac
}

_certile_options() {
  case "$1" in
@OPTIONS@
  esac
}

# MACHINE: the problem that a bundled machine is for.
_certile_problem() {
  case "$1" in
@PROBLEMS@
  esac
}

# NETWORK: its conv and matmul layers, read from its file.
_certile_layers() {
  local file="$1"
  case "$file" in
    '' | *@* | *.onnx) return ;;
    *.json) ;;
    *) file=@NETWORKS@/"$file".json ;;
  esac
  if [ -r "$file" ]; then
    sed -n -e 's/^ *{"op": "conv", "name": "\([^"]*\)".*/\1/p' -e 's/^ *{"op": "matmul", "name": "\([^"]*\)".*/\1/p' "$file"
  fi
}

_certile() {
  local typed=() command="" problem="" machine="" network="" option="" place=0 joined="" head="" word kind i
  COMPREPLY=()
  # bash cuts words at = and : too. --option=value stays two words, all others become one again.
  for ((i = 1; i <= COMP_CWORD; i++)); do
    word="${COMP_WORDS[i]}" joined="" head=""
    if [ "$word" = "=" ] && [ "${COMP_WORDS[i - 1]#--}" != "${COMP_WORDS[i - 1]}" ]; then
      [ "$i" -eq "$COMP_CWORD" ] && typed+=("")
    elif [ "$i" -gt 1 ] && { [ "$word" = "=" ] || [ "$word" = ":" ]; }; then
      joined=yes
      i=$((i + 1))
      typed[${#typed[@]} - 1]+="$word${COMP_WORDS[i]}"
    elif [ "${word#--*=}" != "$word" ]; then  # not cut
      head="${word%%=*}="
      typed+=("${word%%=*}" "${word#*=}")
    else
      typed+=("$word")
    fi
  done
  [ -n "$joined" ] && return
  for ((i = 0; i < ${#typed[@]} - 1; i++)); do
    word="${typed[i]}"
    if [ -n "$option" ]; then
      case "$option" in
        --problem) problem="$word" ;;
        --machine | -m) machine="$word" ;;
      esac
      option=""
    elif [ "${word#-}" != "$word" ]; then
      [ -n "$(_certile_kind "$command" "$word")" ] && option="$word"
    elif [ -z "$command" ]; then
      command="$word"
    else
      place=$((place + 1))
      [ "$(_certile_kind "$command" "$place")" = "networks/" ] && network="$word"
    fi
  done
  word="${typed[${#typed[@]} - 1]}"
  if [ -n "$option" ]; then
    kind=$(_certile_kind "$command" "$option")
  elif [ "${word#-}" != "$word" ]; then
    kind=options
  elif [ -z "$command" ]; then
    kind=commands
  else
    kind=$(_certile_kind "$command" "$((place + 1))")
  fi
  case "$network" in *@*) machine="" problem="${problem:-applications}" ;; esac
  [ -z "$problem" ] && problem=$(_certile_problem "$machine")
  _certile_reply
}

# Fills COMPREPLY; the variables are those of _certile. A kind that ends in / takes files as well, one that ends in +
# several words with commas between them.
_certile_reply() {
  local list=""
  case "$kind" in
    options) list=$(_certile_options "$command") ;;
    layers) list=$(_certile_layers "$network") ;;
    *) list=$(_certile_words "${kind%[+/]}" "$problem") ;;
  esac
  case "$kind:$word" in
    *+:*,*) head="$head${word%,*}," word="${word##*,}" ;;
  esac
  for i in $(compgen -W "$list" -- "$word"); do COMPREPLY+=("$head$i"); done
  case "$kind" in
    */)
      while IFS= read -r i; do COMPREPLY+=("$head$i"); done < <(compgen -f -- "$word")
      type compopt >/dev/null 2>&1 && compopt -o filenames 2>/dev/null
      ;;
    pins) type compopt >/dev/null 2>&1 && compopt -o nospace 2>/dev/null ;;
  esac
  return 0
}

complete -F _certile certile
