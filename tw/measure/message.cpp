#include "tw/measure/impl/message.h"

#include <cerrno>
#include <cstring>
#include <fmt/format.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tw/base/error.h"
#include "tw/base/round.h"

namespace tw::measure {

namespace {

/// Reads exactly `size` bytes; false at the end of the stream.
bool read_all(int socket, char* to, size_t size, double timeout_s) {
  const double start = seconds(CLOCK_MONOTONIC);
  while (size > 0) {
    pollfd ready{socket, POLLIN, 0};
    const double left = timeout_s - (seconds(CLOCK_MONOTONIC) - start);
    const int wait = timeout_s < 0 ? -1 : static_cast<int>(std::max(left, 0.0) * 1000) + 1;
    const int state = poll(&ready, 1, wait);
    if (state < 0 && errno == EINTR) continue;
    if (state == 0) throw DeviceError(fmt::format("no answer within {} s", timeout_s));
    const ssize_t got = recv(socket, to, size, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    to += got;
    size -= static_cast<size_t>(got);
  }
  return true;
}

constexpr int64_t kLine = 64;

}  // namespace

double seconds(clockid_t clock) {
  timespec t;
  clock_gettime(clock, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

bool send(int socket, const nlohmann::json& message) {
  const std::string text = message.dump();
  const uint64_t size = text.size();
  std::string bytes(reinterpret_cast<const char*>(&size), sizeof size);
  bytes += text;
  for (size_t at = 0; at < bytes.size();) {
    const ssize_t sent = ::send(socket, bytes.data() + at, bytes.size() - at, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    at += static_cast<size_t>(sent);
  }
  return true;
}

std::optional<nlohmann::json> receive(int socket, double timeout_s) {
  uint64_t size = 0;
  if (!read_all(socket, reinterpret_cast<char*>(&size), sizeof size, timeout_s)) return {};
  std::string text(size, '\0');
  if (!read_all(socket, text.data(), size, timeout_s)) return {};
  return nlohmann::json::parse(text);
}

nlohmann::json to_json(const TensorSpec& t) {
  return {{"name", t.name}, {"dtype", name(t.dtype)}, {"dims", t.dims}, {"strides", t.strides}};
}

TensorSpec tensor_spec(const nlohmann::json& j) {
  return {j.at("name"), *dtype_named(j.at("dtype").get<std::string>()), j.at("dims"),
          j.at("strides")};
}

TensorView view_of(const TensorSpec& t, void* data) {
  return {data, t.dtype, t.dims,
          t.strides.empty() ? contiguous_strides(t.dims, t.dtype) : t.strides};
}

int64_t span_bytes(const TensorSpec& t) {
  const TensorView v = view_of(t, nullptr);
  int64_t last = 0;
  for (int axis = 0; axis < v.rank(); ++axis) {
    if (v.dims[axis] == 0) return 0;
    if (v.strides[axis] < 0) throw InternalError("a timed tensor has a negative stride");
    last += (v.dims[axis] - 1) * v.strides[axis];
  }
  return round_up(ceil_div((last + 1) * bits(t.dtype), 8), kLine);
}

Exchange::Exchange(std::vector<TensorSpec> inputs, std::vector<TensorSpec> outputs, int sets)
    : inputs_(std::move(inputs)), outputs_(std::move(outputs)), sets_(sets) {
  bytes_ = sets_ * input_bytes() + kLine;
  for (const TensorSpec& t : outputs_) bytes_ += span_bytes(t);
}

Exchange::~Exchange() {
  if (base_ != nullptr) munmap(base_, static_cast<size_t>(bytes_));
  if (descriptor_ >= 0) close(descriptor_);
}

void Exchange::create() {
  descriptor_ = memfd_create("tilewright-measure", MFD_CLOEXEC);
  if (descriptor_ < 0 || ftruncate(descriptor_, bytes_) != 0)
    throw EnvError(
        fmt::format("cannot make {} bytes of shared memory: {}", bytes_, std::strerror(errno)));
  map(descriptor_);
}

void Exchange::map(int descriptor) {
  descriptor_ = descriptor;
  void* at =
      mmap(nullptr, static_cast<size_t>(bytes_), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  if (at == MAP_FAILED)
    throw EnvError(
        fmt::format("cannot map {} bytes of shared memory: {}", bytes_, std::strerror(errno)));
  base_ = static_cast<char*>(at);
}

int64_t Exchange::input_bytes() const {
  int64_t sum = 0;
  for (const TensorSpec& t : inputs_) sum += span_bytes(t);
  return sum;
}

TensorView Exchange::input(int set, int index) const {
  int64_t at = set * input_bytes();
  for (int i = 0; i < index; ++i) at += span_bytes(inputs_[i]);
  return view_of(inputs_[index], base_ + at);
}

TensorView Exchange::output(int index) const {
  int64_t at = sets_ * input_bytes();
  for (int i = 0; i < index; ++i) at += span_bytes(outputs_[i]);
  return view_of(outputs_[index], base_ + at);
}

}  // namespace tw::measure
