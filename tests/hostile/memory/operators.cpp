// Its blocks come by operator new in every form, in the region too, and go back by operator delete.
#include "frame.h"

#include <cstdio>
#include <memory>
#include <stdexcept>
#include <new>
#include <string>
#include <vector>

static long total;

extern "C" void between(struct item **, int step)
{
    std::unique_ptr<int> one(new int(step));
    std::unique_ptr<double[]> many(new double[100 + step]);
    std::vector<std::string> texts(7, std::string(50, 'a'));
    int *quiet = new (std::nothrow) int[9];
    struct alignas(128) Wide {
        double numbers[16];
    };
    std::unique_ptr<Wide> wide(new Wide());
    delete[] quiet;
    total += *one + static_cast<long>(texts.size() + texts[3].size());
    try {
        std::vector<char> none(static_cast<std::size_t>(-1) / 2 - static_cast<std::size_t>(step));
        total += none[3];
    } catch (const std::bad_alloc &) {
        total++;
    } catch (const std::length_error &) {
        total++;
    }
}

extern "C" struct item *allocate(std::size_t count)
{
    return new item[count]();
}

extern "C" int after(struct item *items)
{
    std::printf("total %ld\n", total);
    delete[] items;
    return 0;
}
