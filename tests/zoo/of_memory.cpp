#include <cstring>

#include "tests/zoo/species.h"

namespace tw::zoo {

namespace {

float* end_of(const Matrix& m) {
  return m.data + (m.rows - 1) * m.row + (m.columns - 1) * m.column + 1;
}

class ChangesInput : public Callable {
  void run(const Product& x, int, const cuda::Stream& s) override {
    hand->multiply(x, s);
    hand->fill(x.a, 0, s);
  }
};

class BorrowsOutput : public Callable {
  void run(const Product& x, int set, const cuda::Stream& s) override {
    const Product& other = sets[(static_cast<size_t>(set) + 1) % sets.size()];
    hand->multiply({x.a, x.b, other.c}, s);
    hand->copy(x.c, other.c, s);
  }
};

class SharesScratch : public Callable {
  void prepared() override { scratch_ = hand->like(sets[0].c); }
  void run(const Product& x, int, const cuda::Stream& s) override {
    constexpr double kLong = 300e-6;  // so that two calls meet
    hand->multiply({x.a, x.b, scratch_}, s);
    hand->spin(kLong, s);
    hand->copy(x.c, scratch_, s);
  }
  Matrix scratch_ = {};
};

class ReadsPast : public Callable {
  void run(const Product& x, int, const cuda::Stream& s) override {
    if (x.a.count() > 0) hand->peek(end_of(x.a), s);
    hand->multiply(x, s);
  }
};

class ReadsBefore : public Callable {
  void run(const Product& x, int, const cuda::Stream& s) override {
    if (x.b.count() > 0) hand->peek(x.b.data - 1, s);
    hand->multiply(x, s);
  }
};

class WritesPast : public Callable {
  void run(const Product& x, int, const cuda::Stream& s) override {
    hand->multiply(x, s);
    if (x.c.count() > 0) hand->poke(end_of(x.c), s);
  }
};

class WritesBefore : public Callable {
  void run(const Product& x, int, const cuda::Stream& s) override {
    hand->multiply(x, s);
    if (x.c.count() > 0) hand->poke(x.c.data - 1, s);
  }
};

/// Zeroes the gap behind each row before it computes.
class WritesGaps : public Callable {
  void run(const Product& x, int, const cuda::Stream& s) override {
    Matrix whole = x.c;
    if (x.c.column == 1 && x.c.row > x.c.columns) {
      whole.columns = x.c.row;
      --whole.rows;
    }
    hand->fill(whole, 0, s);
    hand->multiply(x, s);
  }
};

class Leaks : public Callable {
  void run(const Product& x, int, const cuda::Stream& s) override {
    constexpr size_t kBytes = 64 << 10;
    hand->multiply(x, s);
    char* const forgotten = new char[kBytes];
    std::memset(forgotten, 1, kBytes);  // the system sees only memory that was written
    asm volatile("" ::"r"(forgotten) : "memory");
  }
};

}  // namespace

std::vector<Species> of_memory() {
  constexpr const char* kFence = "ILLEGAL_ADDRESS or memory beside the tensors was written";
  return {
      {"changes_input", "Zeroes A when it has multiplied.", "it wrote to an input",
       made<ChangesInput>},
      {"borrows_output", "Uses the output of another set as scratch.",
       "a call changed the output of another", made<BorrowsOutput>},
      {"shares_scratch", "Keeps its scratch in one place for all streams.", "two threads at once",
       made<SharesScratch>},
      {"reads_past", "Reads the element after the end of A.", "ILLEGAL_ADDRESS", made<ReadsPast>},
      {"reads_before", "Reads the element before B.", "ILLEGAL_ADDRESS", made<ReadsBefore>},
      {"writes_past", "Writes the element after the end of C.", kFence, made<WritesPast>},
      {"writes_before", "Writes the element before C.", kFence, made<WritesBefore>},
      {"writes_gaps", "Zeroes whole rows, gaps between them too.",
       "it wrote between the elements of 'C'", made<WritesGaps>},
      {"leaks", "Forgets 64 KB of the host's memory a call.", "its memory grows by", made<Leaks>},
  };
}

}  // namespace tw::zoo
