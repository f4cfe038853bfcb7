// Go, linked with the C library, whose hot region is Go's own code on stacks that are moved.
package main

/*
#include <stdlib.h>
*/
import "C"
import "fmt"

type item struct {
	x, y, z, w float64
	a, b, c, d int64
}

//go:noinline
func work(items []item, depth int) {
	if depth > 0 {
		var room [64]int64
		room[depth] = int64(depth)
		work(items, depth-1)
		items[0].a = room[depth]
		return
	}
	for i := range items {
		items[i].x += 0.5 * items[i].y
	}
}

func main() {
	C.free(C.malloc(100))
	items := make([]item, 20000)
	for i := range items {
		items[i].y = float64(i % 1000)
	}
	for step := 0; step < 600; step++ {
		done := make(chan bool)
		go func() { work(items, step%3*20); done <- true }()
		<-done
	}
	sum := 0.0
	for i := range items {
		sum += items[i].x
	}
	fmt.Printf("sum %.17g\n", sum)
}
