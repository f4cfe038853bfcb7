// Go with the C library: the hot region is C, called from goroutines on whichever thread there is.
package main

/*
#cgo CFLAGS: -O2 -g
#include <stdlib.h>
struct item { double x, y, z, w; long a, b, c, d; };
__attribute__((noinline)) static void work(struct item *items, int count)
{
    for (int i = 0; i < count; i++)
        items[i].x += 0.5 * items[i].y;
}
*/
import "C"
import (
	"fmt"
	"unsafe"
)

func main() {
	const count = 20000
	memory := C.malloc(C.size_t(count * C.sizeof_struct_item))
	items := unsafe.Slice((*C.struct_item)(memory), count)
	for i := range items {
		items[i] = C.struct_item{y: C.double(i % 1000)}
	}
	for step := 0; step < 600; step++ {
		done := make(chan bool)
		go func() { C.work((*C.struct_item)(memory), count); done <- true }()
		<-done
	}
	sum := 0.0
	for i := range items {
		sum += float64(items[i].x)
	}
	fmt.Printf("sum %.17g\n", sum)
}
