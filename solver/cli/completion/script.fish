# It starts no Python: the names below are those of the certile that wrote it. Write it anew after an update.

# KIND [PROBLEM]: the words of a kind, of one problem if it is named; a line each.
function __certile_words
    switch "$argv[1]:$argv[2]"
@WORDS@
    end | string split ' '
end

# MACHINE: the problem that a bundled machine is for.
function __certile_problem_of
    switch "$argv[1]"
@PROBLEMS@
    end
end

# What follows an option on the command line.
function __certile_after
    set -l words (commandline -opc)
    for i in (seq (count $words))
        if contains -- $words[$i] $argv
            echo $words[(math $i + 1)]
            return
        end
    end
end

# The words of a kind for the problem that is asked for, or that the machine is for.
function __certile_asked
    set -l problem (__certile_after --problem)
    if test -z "$problem"
        if string match -q '*@*' -- (commandline -opc)
            set problem applications
        else
            set problem (__certile_problem_of (__certile_after --machine -m))
        end
    end
    __certile_words $argv[1] "$problem"
end

# The conv and matmul layers of the network on the command line, read from its file.
function __certile_layers
    for word in (commandline -opc)[3..-1]
        set -l file $word
        if not string match -q '*.json' -- $word
            set file @NETWORKS@/$word.json
        end
        if test -r "$file"
            sed -n -e 's/^ *{"op": "conv", "name": "\([^"]*\)".*/\1/p' -e 's/^ *{"op": "matmul", "name": "\([^"]*\)".*/\1/p' $file
            return
        end
    end
end

complete -c certile -f
@COMPLETE@
