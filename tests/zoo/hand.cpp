#include <algorithm>
#include <bit>
#include <fstream>

#include "tw/base/error.h"
#include "tw/base/round.h"

#include "tests/zoo/species.h"

namespace tw::zoo {

namespace {

constexpr int kThreads = 128;

void add(std::vector<uint64_t>& words, const Matrix& m) {
  words.push_back(reinterpret_cast<uint64_t>(m.data));
  for (const int64_t n : {m.rows, m.columns, m.row, m.column})
    words.push_back(static_cast<uint64_t>(n));
}

Matrix matrix(const TensorView& t) {
  if (t.rank() != 2 || t.dtype != f32) throw UserError("only matrices of f32");
  return {static_cast<float*>(t.data), t.dims[0], t.dims[1], t.strides[0], t.strides[1]};
}

class InZoo : public check::DeviceCallable {
 public:
  InZoo(const Device& d, const std::string& cubin, std::unique_ptr<Callable> callable)
      : hand_(d, cubin), callable_(std::move(callable)) {
    callable_->hand = &hand_;
  }
  std::string prepare(const std::vector<measure::TensorSet>& sets) override {
    callable_->sets.clear();
    for (const measure::TensorSet& s : sets)
      callable_->sets.push_back({matrix(s.inputs[0]), matrix(s.inputs[1]), matrix(s.outputs[0])});
    callable_->prepared();
    return "zoo";
  }
  void run(int set, const cuda::Stream& s) override {
    callable_->run(callable_->sets[static_cast<size_t>(set)], set, s);
  }

 private:
  Hand hand_;
  std::unique_ptr<Callable> callable_;
};

}  // namespace

Hand::Hand(const Device& d, const std::string& cubin) : device_(d), stream_(cuda::Stream::make(d)) {
  const std::shared_ptr<const cuda::Module> module = cuda::Module::load(d, cubin);
  multiply_ = module->function("zoo_multiply");
  fill_ = module->function("zoo_fill");
  copy_ = module->function("zoo_copy");
  spin_ = module->function("zoo_spin");
  peek_ = module->function("zoo_peek");
  poke_ = module->function("zoo_poke");
}

void Hand::start(const cuda::Function& f, const std::vector<uint64_t>& words, int64_t threads,
                 const cuda::Stream& s) const {
  if (threads > 0)
    launch(f, words, {.grid = ceil_div(threads, int64_t{kThreads}), .threads = kThreads}, s);
}

void Hand::multiply(const Product& x, const cuda::Stream& s, How how, Part part) const {
  part.last = std::min(part.last, x.c.rows);
  part.terms = std::min(part.terms, x.a.columns);
  std::vector<uint64_t> words;
  for (const Matrix& m : {x.a, x.b, x.c}) add(words, m);
  for (const int64_t n : {static_cast<int64_t>(how), part.first, part.last, part.terms, part.start})
    words.push_back(static_cast<uint64_t>(n));
  start(*multiply_, words, (part.last - part.first) * x.c.columns, s);
}

void Hand::fill(const Matrix& m, float value, const cuda::Stream& s) const {
  std::vector<uint64_t> words;
  add(words, m);
  words.push_back(std::bit_cast<uint32_t>(value));
  start(*fill_, words, m.count(), s);
}

void Hand::copy(const Matrix& to, const Matrix& from, const cuda::Stream& s) const {
  std::vector<uint64_t> words;
  add(words, to);
  add(words, from);
  start(*copy_, words, to.count(), s);
}

void Hand::spin(double seconds, const cuda::Stream& s) const {
  launch(*spin_, std::vector{static_cast<uint64_t>(seconds * 1e9)}, {.threads = 1}, s);
}

void Hand::peek(const float* at, const cuda::Stream& s) const {
  start(*peek_, {reinterpret_cast<uint64_t>(at)}, 1, s);
}

void Hand::poke(float* at, const cuda::Stream& s) const {
  start(*poke_, {reinterpret_cast<uint64_t>(at)}, 1, s);
}

Matrix Hand::like(const Matrix& m) {
  const Tensor t = empty(device_, f32, {std::max<int64_t>(m.count(), 1)});
  memory_.push_back(t);
  return {t.data<float>(), m.rows, m.columns, m.columns, 1};
}

std::vector<Species> species() {
  std::vector<Species> all;
  for (const auto& some : {honest(), wrong_values(), early_or_late(), of_memory(), rude()})
    all.insert(all.end(), some.begin(), some.end());
  return all;
}

std::unique_ptr<measure::Contestant> make_contestant(const measure::ContestantSpec& spec,
                                                     const measure::Task&) {
  const size_t first = spec.source.find('\n'), second = spec.source.find('\n', first + 1);
  const Device d = Device::open(spec.source.substr(first + 1, second - first - 1));
  std::ifstream file(spec.source.substr(second + 1), std::ios::binary);
  const std::string cubin(std::istreambuf_iterator<char>(file), {});
  for (const Species& s : species())
    if (spec.source.substr(0, first) == s.name)
      return check::on_device(d, std::make_unique<InZoo>(d, cubin, s.make()));
  return nullptr;
}

}  // namespace tw::zoo
