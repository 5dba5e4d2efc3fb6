#include "tw/jit/variants.h"

#include <algorithm>
#include <mutex>

namespace tw {

Variants::~Variants() {
  for (Node* n = first_; n;) {
    Node* next = n->next;
    delete n->ready.load();
    delete n;
    n = next;
  }
}

Variants::Node& Variants::node(std::span<const uint64_t> facts) {
  auto find = [&](Node* from, Node* to) -> Node* {
    for (; from != to; from = from->next) {
      if (std::equal(facts.begin(), facts.end(), from->facts.begin(), from->facts.end())) {
        return from;
      }
    }
    return nullptr;
  };
  Node* first = first_.load(std::memory_order_acquire);
  if (Node* found = find(first, nullptr)) return *found;
  auto fresh = std::make_unique<Node>();
  fresh->facts.assign(facts.begin(), facts.end());
  for (;;) {
    fresh->next = first;
    Node* seen = first;
    if (first_.compare_exchange_strong(first, fresh.get(), std::memory_order_acq_rel)) {
      return *fresh.release();
    }
    if (Node* found = find(first, seen)) return *found;  // another thread was faster
  }
}

const Variant& Variants::get(std::span<const uint64_t> facts,
                             const std::function<Variant()>& build) {
  Node& n = node(facts);
  if (const Variant* v = n.ready.load(std::memory_order_acquire)) return *v;
  std::lock_guard guard(n.building);
  if (const Variant* v = n.ready.load(std::memory_order_acquire)) return *v;
  const Variant* v = new Variant(build());
  n.ready.store(v, std::memory_order_release);
  return *v;
}

}  // namespace tw
