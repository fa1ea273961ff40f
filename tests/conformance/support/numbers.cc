// SPDX-License-Identifier: BSD-2-Clause
// How are numbered operations posted, and their ends counted?
#include "numbers.h"

#include "delivery.h"

namespace weft::conformance {
namespace {

// So many times in a row -FI_EAGAIN, with progress between.
constexpr int kStubborn = 400;

Numbers::Buffers buffers_of(const Traits& kind) {
  return kind.receive || kind.read ? Numbers::Buffers::kBlank : Numbers::Buffers::kSources;
}

}  // namespace

Numbers::Numbers(fid_ep* ep, const Operation& like)
    : Numbers(like.length, buffers_of(traits(like.kind)), [ep, like](Numbered& one) {
        Operation operation = like;
        operation.data = one.number;
        operation.remote_address += one.number * like.length;
        return issue(ep, operation, one.buffer.data(), one.context());
      }) {}

ssize_t Numbers::post() {
  Numbered& one = all_.emplace_back(all_.size(), length_);
  one.ended = &ended_;
  if (buffers_ == Buffers::kSources) one.buffer.fill(number_seed(one.number), 0, length_);
  const ssize_t rc = call_(one);
  EXPECT_TRUE(rc == 0 || rc == -FI_EAGAIN) << fi_strerror(static_cast<int>(-rc));
  if (rc != 0) all_.pop_back();
  return rc;
}

bool Numbers::post_up_to(std::size_t count, const std::function<void()>& between) {
  int refused = 0;
  while (all_.size() < count && refused < kStubborn && !testing::Test::HasFailure()) {
    refused = post() == 0 ? 0 : refused + 1;
    between();
  }
  return refused < kStubborn;
}

void Numbers::expect_all_ended(int err) const {
  for (const Numbered& one : all_) {
    EXPECT_EQ(one.ends, 1U) << "number " << one.number;
    EXPECT_EQ(one.end.err, err) << "number " << one.number;
    if (testing::Test::HasFailure()) return;
  }
}

void Numbers::expect_holds(std::size_t receive, std::size_t number) const {
  const GuardedBuffer& buffer = all_[receive].buffer;
  EXPECT_EQ(buffer.check_pattern(number_seed(number), 0, length_), "") << "receive " << receive;
  EXPECT_EQ(buffer.check_guards(), "") << "receive " << receive;
}

void Numbers::expect_in_order() const {
  for (std::size_t i = 0; i < all_.size() && !testing::Test::HasFailure(); ++i) expect_holds(i, i);
}

std::vector<Completion> read_entries(fid_cq* cq, std::size_t most) {
  std::vector<Completion> all;
  while (all.size() < most) {
    fi_cq_tagged_entry entry{};
    const ssize_t got = fi_cq_read(cq, &entry, 1);
    if (got == -FI_EAGAIN) break;
    EXPECT_TRUE(got == 1 || got == -FI_EAVAIL) << fi_strerror(static_cast<int>(-got));
    fi_cq_err_entry error{};
    if (got == -FI_EAVAIL) {
      EXPECT_EQ(fi_cq_readerr(cq, &error, 0), 1);
    }
    all.push_back(got == 1 ? completion_of(entry) : completion_of(error));
    const Completion& end = all.back();
    if (end.context == nullptr) continue;
    Numbered& one = static_cast<Numbered&>(*static_cast<fi_context2*>(end.context));
    EXPECT_EQ(++one.ends, 1U) << "number " << one.number << " ended again";
    one.end = end;
    ++*one.ended;
  }
  return all;
}

}  // namespace weft::conformance
