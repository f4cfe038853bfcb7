// Go: stacks of its own that are moved, a scheduler, and its own memory. Linked without the C library.
package main

import "fmt"

type item struct {
	x, y, z, w float64
	a, b, c, d int64
}

//go:noinline
func work(items []item) {
	for i := range items {
		items[i].x += 0.5 * items[i].y
	}
}

func main() {
	items := make([]item, 20000)
	for i := range items {
		items[i].y = float64(i % 1000)
	}
	for step := 0; step < 600; step++ {
		done := make(chan bool)
		go func() { work(items); done <- true }()
		<-done
	}
	sum := 0.0
	for i := range items {
		sum += items[i].x
	}
	fmt.Printf("sum %.17g\n", sum)
}
