// Objects with virtual functions, each allocated by itself.
#include "frame.h"

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <vector>

struct Shape {
    virtual ~Shape() = default;
    virtual double area() const = 0;
};
struct Square : Shape {
    double side, pad[5] = {};
    explicit Square(double s) : side(s) {}
    double area() const override { return side * side; }
};
struct Flat : Shape {
    double a, b, pad[4] = {};
    explicit Flat(double v) : a(v), b(v + 1) {}
    double area() const override { return a * b; }
};

static std::vector<std::unique_ptr<Shape>> shapes;

extern "C" __attribute__((noinline)) void work(struct item *items, int count)
{
    double sum = 0;
    for (int i = 0; i < count; i++)
        sum += shapes[static_cast<size_t>(i)]->area();
    items[0].x += sum;
}

extern "C" void before(int, char **)
{
    for (int i = 0; i < ITEMS; i++)
        shapes.push_back(i % 3 ? std::unique_ptr<Shape>(new Square(i % 7)) : std::unique_ptr<Shape>(new Flat(i % 5)));
}
