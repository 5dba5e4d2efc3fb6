#include <numeric>
#include <random>

#include "tests/check/zoo/zoo.h"

namespace zoo {

/// Adds in an order that its address chooses, another one in every process.
class AddressOrder : public Callable {
 public:
  void run(const Product& x, int) override {
    std::vector<int64_t> order(static_cast<size_t>(x.b.rows));
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(),
                 std::mt19937_64(reinterpret_cast<uintptr_t>(&tw_peer)));
    for (int64_t i = 0; i < x.c.rows; ++i)
      for (int64_t j = 0; j < x.c.columns; ++j) {
        float sum = 0;
        for (const int64_t k : order) sum += x.a.at(i, k) * x.b.at(k, j);
        x.c.at(i, j) = sum;
      }
  }
};

}  // namespace zoo

const TwPeer* tw_peer() { return zoo::peer<zoo::AddressOrder>(); }
