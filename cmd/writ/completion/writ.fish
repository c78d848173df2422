# Completion of writ for fish: writ completion fish | source
function __writ_complete
    set -l words (commandline -opc)
    set -l found (writ complete -- $words[2..] "$(commandline -ct)" 2>/dev/null)
    if set -q found[1]
        printf '%s\n' $found
    else
        __fish_complete_path (commandline -ct)
    end
end
complete -c writ -f -a '(__writ_complete)'
