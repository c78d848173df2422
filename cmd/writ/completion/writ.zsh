#compdef writ
# Completion of writ for zsh: source <(writ completion zsh)
_writ() {
    local -a found
    found=("${(@f)$(writ complete -- "${(@)words[2,CURRENT]}" 2>/dev/null)}")
    if [[ -z ${found[1]} ]]; then
        _files
        return
    fi
    found=("${(@)found//:/\\:}")
    found=("${(@)found/$'\t'/:}")
    _describe writ found
}
if [[ ${funcstack[1]} == _writ ]]; then _writ; else compdef _writ writ; fi
