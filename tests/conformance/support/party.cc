// SPDX-License-Identifier: BSD-2-Clause
// How do a test's wishes become requests, and the answers expectations?
#include "party.h"

#include <gtest/gtest.h>

namespace weft::conformance {
namespace {

Request about(Request::What what, Token token) {
  Request request;
  request.what = what;
  request.token = token;
  return request;
}

Request check_of(Request::What what, Token token, std::uint64_t seed, std::uint64_t offset,
                 std::uint64_t count) {
  Request request = about(what, token);
  request.seed = seed;
  request.offset = offset;
  request.count = count;
  return request;
}

}  // namespace

Address Party::name() { return call(about(Request::What::kName, kNoToken)).address; }

fi_addr_t Party::insert(const Address& address) {
  Request request;
  request.what = Request::What::kInsert;
  request.address = address;
  return call(request).value;
}

void Party::connect(const Address& address) {
  Request request;
  request.what = Request::What::kConnect;
  request.address = address;
  call(request);
}

void Party::accept() {
  Request request;
  request.what = Request::What::kAccept;
  const Reply reply = call(request);
  EXPECT_STREQ(reply.text.data(), "");
}

Posted Party::try_post(const Operation& operation) {
  Request request;
  request.what = Request::What::kPost;
  request.operation = operation;
  const Reply reply = call(request);
  return {reply.rc, reply.value};
}

Token Party::post(const Operation& operation) {
  const Posted posted = try_post(operation);
  EXPECT_EQ(posted.rc, 0) << traits(operation.kind).name << " of " << operation.length
                          << " bytes: " << fi_strerror(static_cast<int>(-posted.rc));
  return posted.token;
}

std::optional<Completion> Party::wait(Token token) {
  const Reply reply = call(about(Request::What::kWait, token));
  EXPECT_TRUE(reply.arrived) << "no completion came. " << reply.text.data();
  if (!reply.arrived) return std::nullopt;
  return reply.completion;
}

std::optional<Completion> Party::look_for(Token token, std::chrono::milliseconds limit) {
  Request request = about(Request::What::kWait, token);
  request.limit_ms = static_cast<std::uint64_t>(limit.count());
  const Reply reply = call(request);
  if (!reply.arrived) return std::nullopt;
  return reply.completion;
}

Completion Party::wait_success(Token token) {
  const Completion c = wait(token).value_or(Completion{});
  EXPECT_EQ(c.err, 0) << "completed with error: " << fi_strerror(c.err);
  return c;
}

Completion Party::wait_error(Token token, int err) {
  const Completion c = wait(token).value_or(Completion{});
  EXPECT_EQ(c.err, err) << "completed with \"" << fi_strerror(c.err) << "\", expected \""
                        << fi_strerror(err) << '"';
  return c;
}

void Party::expect_data(Token token, std::uint64_t seed, std::uint64_t count, std::uint64_t skip) {
  const Reply reply = call(check_of(Request::What::kCheck, token, seed, skip, count));
  EXPECT_STREQ(reply.text.data(), "");
}

Region Party::expose(const RegionSpec& spec) {
  Request request;
  request.what = Request::What::kExpose;
  request.region = spec;
  const Region region = call(request).region;
  EXPECT_EQ(region.rc, 0) << "fi_mr_reg: " << fi_strerror(-region.rc);
  return region;
}

void Party::expect_region(const Region& region, std::uint64_t seed, std::uint64_t offset,
                          std::uint64_t count) {
  const Reply reply =
      call(check_of(Request::What::kCheckRegion, region.token, seed, offset, count));
  EXPECT_STREQ(reply.text.data(), "");
}

void Party::expect_region_blank(const Region& region, std::uint64_t offset, std::uint64_t count) {
  expect_region(region, 0, offset, count);
}

int Party::close_region(const Region& region) {
  return static_cast<int>(call(about(Request::What::kCloseRegion, region.token)).rc);
}

std::uint64_t Party::map_key(const Region& region) {
  Request request;
  request.what = Request::What::kMapKey;
  request.other_region = region;
  const Reply reply = call(request);
  EXPECT_EQ(reply.rc, 0) << "fi_mr_map_raw: " << fi_strerror(static_cast<int>(-reply.rc));
  return reply.value;
}

void Party::unmap_key(std::uint64_t key) {
  Request request;
  request.what = Request::What::kUnmapKey;
  request.key = key;
  EXPECT_EQ(call(request).rc, 0);
}

std::uint64_t Party::counter(std::uint64_t event) {
  return call(about(Request::What::kCounter, event)).value;
}

std::uint64_t Party::counter_error(std::uint64_t event) {
  return call(about(Request::What::kCounterError, event)).value;
}

void Party::expect_counter(std::uint64_t event, std::uint64_t value) {
  Request request = about(Request::What::kWaitCounter, event);
  request.count = value;
  EXPECT_EQ(call(request).value, value) << "counter of event " << fi_tostr(&event, FI_TYPE_CAPS);
}

void Party::expect_counted(const Region& region, std::uint64_t value) {
  Request request = about(Request::What::kWaitRegionCounter, region.token);
  request.count = value;
  EXPECT_EQ(call(request).value, value) << "counter of a region";
}

int Party::cancel(Token token) {
  return static_cast<int>(call(about(Request::What::kCancel, token)).rc);
}

std::uint64_t Party::leftovers() { return call(about(Request::What::kLeftovers, kNoToken)).value; }

}  // namespace weft::conformance
