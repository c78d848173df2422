# Completion of writ for bash: source <(writ completion bash)
_writ() {
    local IFS=$'\n'
    COMPREPLY=($(writ complete -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null | cut -f1))
}
complete -o default -F _writ writ
