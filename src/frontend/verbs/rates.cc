// SPDX-License-Identifier: BSD-2-Clause
// How fast is a static rate? ibv_rate_to_mult(3), ibv_rate_to_mbps(3)
#include <algorithm>
#include <array>

#include "abi.h"

namespace {

struct Rate {
  ibv_rate code;
  int mult;  // of 2.5 Gb/s; -1: no multiple
  int mbps;
};

constexpr std::array<Rate, 23> kRates = {{
    {IBV_RATE_2_5_GBPS, 1, 2'500},        {IBV_RATE_5_GBPS, 2, 5'000},
    {IBV_RATE_10_GBPS, 4, 10'000},        {IBV_RATE_20_GBPS, 8, 20'000},
    {IBV_RATE_30_GBPS, 12, 30'000},       {IBV_RATE_40_GBPS, 16, 40'000},
    {IBV_RATE_60_GBPS, 24, 60'000},       {IBV_RATE_80_GBPS, 32, 80'000},
    {IBV_RATE_120_GBPS, 48, 120'000},     {IBV_RATE_14_GBPS, -1, 14'062},
    {IBV_RATE_56_GBPS, -1, 56'250},       {IBV_RATE_112_GBPS, -1, 112'500},
    {IBV_RATE_168_GBPS, -1, 168'750},     {IBV_RATE_25_GBPS, -1, 25'781},
    {IBV_RATE_100_GBPS, -1, 103'125},     {IBV_RATE_200_GBPS, -1, 206'250},
    {IBV_RATE_300_GBPS, -1, 309'375},     {IBV_RATE_28_GBPS, 11, 28'125},
    {IBV_RATE_50_GBPS, 20, 53'125},       {IBV_RATE_400_GBPS, 160, 425'000},
    {IBV_RATE_600_GBPS, 240, 637'500},    {IBV_RATE_800_GBPS, 320, 850'000},
    {IBV_RATE_1200_GBPS, 480, 1'275'000},
}};

// The entry whose `member` has that value, or null.
template <class T>
const Rate* find(T Rate::*member, T value) {
  const auto found = std::ranges::find(kRates, value, member);
  return found == kRates.end() ? nullptr : &*found;
}

ibv_rate code_for(int Rate::*member, int value) {
  const Rate* const rate = value > 0 ? find(member, value) : nullptr;
  return rate == nullptr ? IBV_RATE_MAX : rate->code;
}

int number_of(ibv_rate code, int Rate::*member) {
  const Rate* const rate = find(&Rate::code, code);
  return rate == nullptr ? -1 : rate->*member;
}

}  // namespace

int ibv_rate_to_mult(ibv_rate rate) { return number_of(rate, &Rate::mult); }

ibv_rate mult_to_ibv_rate(int mult) { return code_for(&Rate::mult, mult); }

int ibv_rate_to_mbps(ibv_rate rate) { return number_of(rate, &Rate::mbps); }

ibv_rate mbps_to_ibv_rate(int mbps) { return code_for(&Rate::mbps, mbps); }
