# Counts words and pairs of words, adds up numbers, and prints the most frequent ones.
{ for (i = 1; i <= NF; i++) { w = tolower($i); gsub(/[^a-z0-9]/, "", w); if (w ~ /^[0-9]+$/) sum += w; else count[w]++; if (last != "") pair[last " " w]++; last = w } }
END { for (w in count) if (count[w] > best) { best = count[w]; word = w } for (p in pair) if (pair[p] > most) { most = pair[p] } print word, best, most, sum }
