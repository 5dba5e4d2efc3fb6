#include "tw/measure/impl/message.h"

#include <cerrno>
#include <cstring>
#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>

#include "tw/base/error.h"
#include "tw/base/round.h"

namespace tw::measure {

bool can_receive(int socket, double timeout_s) {
  const double start = seconds(CLOCK_MONOTONIC);
  while (true) {
    pollfd ready{socket, POLLIN, 0};
    const double left = timeout_s - (seconds(CLOCK_MONOTONIC) - start);
    const int wait = timeout_s < 0 ? -1 : static_cast<int>(std::max(left, 0.0) * 1000) + 1;
    const int state = poll(&ready, 1, wait);
    if (state >= 0 || errno != EINTR) return state != 0;
  }
}

namespace {

constexpr int64_t kLine = 64;

/// Reads exactly `size` bytes; false at the end of the stream.
bool read_all(int socket, char* to, size_t size, double timeout_s) {
  const double start = seconds(CLOCK_MONOTONIC);
  while (size > 0) {
    const double left = std::max(0.0, timeout_s - (seconds(CLOCK_MONOTONIC) - start));
    if (!can_receive(socket, timeout_s < 0 ? -1 : left))
      throw DeviceError(fmt::format("no answer within {} s", timeout_s));
    const ssize_t got = recv(socket, to, size, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    to += got;
    size -= static_cast<size_t>(got);
  }
  return true;
}

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
  return {{"name", t.name},
          {"dtype", name(t.dtype)},
          {"dims", t.dims},
          {"strides", t.strides},
          {"fixed", t.fixed}};
}

TensorSpec tensor_spec(const nlohmann::json& j) {
  return {j.at("name"), *dtype_named(j.at("dtype").get<std::string>()), j.at("dims"),
          j.at("strides"), j.at("fixed")};
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

}  // namespace tw::measure
