package nodeconf

import "strings"

// splitWords splits a command line or a list of assignments as systemd does: at blanks, with single and
// double quotes around a word or a part of it, and with backslashes outside of single quotes.
func splitWords(text string) (words []string) {
	var word strings.Builder
	var quote rune
	begun, escaped := false, false
	for _, c := range text {
		switch {
		case escaped:
			word.WriteRune(unescaped(c))
			escaped = false
		case c == '\\' && quote != '\'':
			escaped, begun = true, true
		case quote != 0:
			if c == quote {
				quote = 0
			} else {
				word.WriteRune(c)
			}
		case c == '"' || c == '\'':
			quote, begun = c, true
		case c == ' ' || c == '\t' || c == '\n':
			if begun {
				words = append(words, word.String())
			}
			word.Reset()
			begun = false
		default:
			word.WriteRune(c)
			begun = true
		}
	}
	if begun {
		words = append(words, word.String())
	}
	return words
}

func unescaped(c rune) rune {
	switch c {
	case 'n':
		return '\n'
	case 't':
		return '\t'
	}
	return c
}

// expand replaces variables in the words of a command as systemd does: ${NAME} anywhere becomes its
// value, and a word that is $NAME alone becomes the words of its value. A variable that is not set is empty.
func expand(words []string, env map[string]Given) (expanded []string) {
	for _, w := range words {
		if name, ok := strings.CutPrefix(w, "$"); ok && isVariable(name) {
			expanded = append(expanded, splitWords(env[name].Value)...)
			continue
		}
		expanded = append(expanded, expandBraces(w, env))
	}
	return expanded
}

func expandBraces(word string, env map[string]Given) string {
	var b strings.Builder
	for {
		before, rest, found := strings.Cut(word, "${")
		name, after, closed := strings.Cut(rest, "}")
		if !found || !closed || !isVariable(name) {
			b.WriteString(word)
			return b.String()
		}
		b.WriteString(before)
		b.WriteString(env[name].Value)
		word = after
	}
}

func isVariable(name string) bool {
	letters := strings.TrimFunc(name, func(r rune) bool {
		return r == '_' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
	})
	return name != "" && letters == ""
}

// parseArgs reads flags with one or two dashes, with their value behind "=" or in the next word. rest are
// the words that belong to no flag, such as a command. given tells where the words are from.
func parseArgs(words []string, given Given) (args []Arg, rest []string) {
	for i := 0; i < len(words); i++ {
		w := words[i]
		if !strings.HasPrefix(w, "-") || strings.Trim(w, "-") == "" {
			rest = append(rest, w)
			continue
		}
		name, value, has := strings.Cut(strings.TrimLeft(w, "-"), "=")
		switch {
		case has:
		case i+1 < len(words) && !strings.HasPrefix(words[i+1], "-"):
			i++
			value = words[i]
		default:
			value = "true"
		}
		given.Value = value
		args = append(args, Arg{name, given})
	}
	return args, rest
}

// lastArg is the value of the last argument called name.
func lastArg(args []Arg, name string) (Given, bool) {
	for i := len(args) - 1; i >= 0; i-- {
		if flagName(args[i].Name) == name {
			return args[i].Given, true
		}
	}
	return Given{}, false
}

// flagName is a kubelet flag's usual spelling: the kubelet takes underscores for dashes.
func flagName(name string) string { return strings.ReplaceAll(name, "_", "-") }
