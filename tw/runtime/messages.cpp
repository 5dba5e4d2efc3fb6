#include <algorithm>
#include <cstring>
#include <fmt/format.h>

#include "tw/runtime/impl/told.h"

namespace tw {

static const int64_t kPartBytes[] = {kCheckBytes, kMessageBytes - kCheckBytes};

void clear_messages(void* buffer) {
  auto* part = static_cast<char*>(buffer);
  for (const int64_t size : kPartBytes) {
    std::memset(part, 0, static_cast<size_t>(size));
    const MessagePart head{.bytes = static_cast<uint64_t>(size)};
    std::memcpy(part, &head, sizeof head);
    part += size;
  }
}

/// Returns how many messages were lost.
static uint64_t hear_part(const char* part, int64_t size, Told& told) {
  MessagePart head;
  std::memcpy(&head, part, sizeof head);
  const auto end = std::min(head.used, static_cast<uint64_t>(size));
  for (uint64_t at = sizeof head; at + sizeof(MessageRecord) <= end;) {
    MessageRecord r;
    std::memcpy(&r, part + at, sizeof r);
    if (r.size < sizeof r || r.size > end - at) break;  // there was no room from here on
    told.hear(r.number, r.instance, r.element, part + at + sizeof r);
    at += r.size;
  }
  return head.lost;
}

void hear_messages(const void* buffer, const std::string& program, size_t axes,
                   const Messages& messages) {
  const auto* part = static_cast<const char*>(buffer);
  Told told(messages, axes);
  hear_part(part, kPartBytes[0], told);
  const uint64_t lost = hear_part(part + kPartBytes[0], kPartBytes[1], told);
  if (lost > 0) {
    print_lines(messages.print, fmt::format("{}: {} more prints found no room in {} bytes\n",
                                            program, lost, kPartBytes[1]));
  }
  told.rethrow();
}

}  // namespace tw
