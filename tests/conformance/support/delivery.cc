// SPDX-License-Identifier: BSD-2-Clause
// How often is a datagram sent, and which ones may be heard?
#include "delivery.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <set>

#include "channel.h"

namespace weft::conformance {
namespace {

constexpr std::chrono::milliseconds kMoment(200);

void send_one(Party& from, const Operation& operation) {
  const Token token = from.post(operation);
  if (!traits(operation.kind).inject) from.wait_success(token);
}

}  // namespace

bool may_lose() { return std::getenv("WEFT_TEST_LOSSES") != nullptr; }

bool until_heard(const std::function<void()>& send,
                 const std::function<bool(std::chrono::milliseconds limit)>& heard) {
  const auto end = std::chrono::steady_clock::now() + patience();
  do {
    send();
    if (heard(may_lose() ? kMoment : patience())) return true;
  } while (may_lose() && std::chrono::steady_clock::now() < end && !testing::Test::HasFailure());
  return false;
}

Completion deliver(Party& from, const Operation& operation, Party& to, Token received) {
  std::optional<Completion> c;
  std::size_t tries = 0;
  const bool heard = until_heard(
      [&] {
        send_one(from, operation);
        ++tries;
      },
      [&](std::chrono::milliseconds limit) {
        return (c = to.look_for(received, limit)).has_value();
      });
  EXPECT_TRUE(heard) << "no completion came of " << tries << " datagrams";
  // A try that was not lost but late finds no receive.
  if (tries > 1) to.leftovers();
  return c.value_or(Completion{});
}

std::vector<Completion> hear_numbered(const std::vector<Source>& sources, std::size_t length,
                                      std::size_t count, const Next& next) {
  std::uint64_t numbers = 0;
  std::vector<Completion> all;
  const auto send_what_is_missing = [&] {
    for (std::size_t i = all.size(); i < count; ++i, ++numbers) {
      const Source& source = sources[numbers % sources.size()];
      send_one(*source.party, {.kind = Kind::kSenddata,
                               .length = length,
                               .seed = number_seed(numbers),
                               .peer = source.receiver,
                               .data = numbers});
    }
  };
  std::set<std::uint64_t> heard;
  const bool enough = until_heard(send_what_is_missing, [&](std::chrono::milliseconds limit) {
    while (all.size() < count) {
      const auto c = next(limit);
      if (!c) return false;
      all.push_back(*c);
      EXPECT_EQ(c->err, 0);
      EXPECT_EQ(c->length, length);
      EXPECT_LT(c->data, numbers) << "was never sent";
      EXPECT_TRUE(heard.insert(c->data).second) << "number " << c->data << " came twice";
      EXPECT_EQ(c->source, sources[c->data % sources.size()].name);
    }
    return true;
  });
  EXPECT_TRUE(enough) << all.size() << " of " << count << " were heard";
  return all;
}

}  // namespace weft::conformance
