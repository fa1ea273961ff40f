// SPDX-License-Identifier: BSD-2-Clause
// Has a packet been changed on its way? The invariant CRC (IBTA 7.8.1, annex A17)
#include "wire/icrc.h"

#include <isa-l/crc.h>

#include <bit>
#include <cstring>

#include "ip_headers.h"
#include "wire/endian.h"
#include "wire/packet.h"

namespace weft::wire {
namespace {

constexpr std::size_t kMaskedLrh = 8;  // stands for the link header that there is none of
constexpr std::size_t kLongestStart = kMaskedLrh + kIpv6Bytes + kUdpBytes + kBthBytes;
constexpr std::byte kMasked{0xFF};
// In the base header: bits that switches may set on the way, to tell of congestion.
constexpr std::size_t kEcnByte = 4;
static_assert(kEcnByte == sizeof(std::uint32_t));  // as kByEcnByte takes it
// In the IPv4 header, what a socket does not see.
constexpr std::size_t kWordsEnd = 8;

// What precedes the base header, with ones for what routers may change. Returns its length.
std::size_t write_start(const Route& route, std::size_t datagram, Ipv4Words words, std::byte* out) {
  std::memset(out, 0xFF, kMaskedLrh);
  std::byte* ip = out + kMaskedLrh;
  write_ip_and_udp(route, words, datagram, ip);
  if (route.v6) {
    store<std::uint32_t>(ip, 0x6FFF'FFFF);
    ip[7] = kMasked;
  } else {
    ip[1] = kMasked;
    ip[8] = kMasked;
    store<std::uint16_t>(ip + 10, 0xFFFF);
  }
  const std::size_t length = kMaskedLrh + ip_bytes_of(route) + kUdpBytes;
  store<std::uint16_t>(out + length - 2, 0xFFFF);
  return length;
}

// Tells the processor that the upper parts of its vector registers are unused from here on. The
// library leaves them in use, and then each change between instructions that know of them and ones
// that do not costs up to 100 ns: more than the CRC of 1 KiB.
#if defined(__x86_64__) && !defined(__AVX__)
const bool has_upper_parts = __builtin_cpu_supports("avx") != 0;
inline void forget_upper_parts() {
  if (has_upper_parts) asm volatile("vzeroupper" ::: "memory");
}
#else
inline void forget_upper_parts() {}
#endif

std::uint32_t extend(std::uint32_t crc, std::span<const std::byte> bytes) {
  crc = crc32_gzip_refl(crc, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
  forget_upper_parts();
  return crc;
}

// Polynomials over GF(2) modulo the CRC's, as reflected words: bit 31 is the constant term.
constexpr std::uint32_t kPolynomial = 0xEDB8'8320;
constexpr std::uint32_t kOne = 0x8000'0000;

constexpr std::uint32_t times_x(std::uint32_t a) {
  return (a >> 1) ^ ((a & 1) != 0 ? kPolynomial : 0);
}

constexpr std::uint32_t multiply(std::uint32_t a, std::uint32_t b) {
  std::uint32_t product = 0;
  for (std::uint32_t bit = kOne; bit != 0; bit >>= 1, b = times_x(b)) {
    if ((a & bit) != 0) product ^= b;
  }
  return product;
}

// x to the power of -8 * 2^i, in the i-th place.
constexpr auto kBackwards = [] {
  std::array<std::uint32_t, 16> powers{};
  // x^-1: what times_x() turns into 1. The polynomial's upper bit says where that came from.
  std::uint32_t inverse = ((kOne ^ kPolynomial) << 1) | 1;
  for (int i = 0; i < 3; ++i) inverse = multiply(inverse, inverse);
  for (std::uint32_t& power : powers) {
    power = inverse;
    inverse = multiply(inverse, inverse);
  }
  return powers;
}();

constexpr std::size_t kBehindWords = kIpv4Bytes - kWordsEnd + kUdpBytes;

// What an identification that is not 0 changes in the CRC of what precedes the base header: for
// those of the packets of a train.
constexpr auto kByIdentification = [] {
  std::uint32_t power = kOne;
  for (std::size_t i = 0; i < 8 * (kBehindWords + sizeof power); ++i) power = times_x(power);
  std::array<std::uint32_t, 64> changes{};
  for (std::uint32_t id = 0; id < changes.size(); ++id) changes[id] = multiply(id << 8, power);
  return changes;
}();

// The difference in a word which makes a difference of `crc` when `bytes` bytes follow that word.
constexpr std::uint32_t cause_of(std::uint32_t crc, std::size_t bytes) {
  const std::size_t steps = bytes + sizeof(std::uint32_t);
  for (std::size_t i = 0; i < kBackwards.size(); ++i) {
    if ((steps >> i & 1) != 0) crc = multiply(crc, kBackwards[i]);
  }
  return crc;
}

// What must be changed in the CRC of what precedes the base header so that a masked byte of that
// may be summed up as it is: by the bits that masking would change.
constexpr auto kByEcnByte = [] {
  std::array<std::uint32_t, 256> changes{};
  for (std::uint32_t bits = 0; bits < changes.size(); ++bits) changes[bits] = cause_of(bits, 0);
  return changes;
}();

}  // namespace

std::uint32_t icrc(const Route& route, std::span<const std::byte> headers,
                   std::span<const std::byte> payload, Ipv4Words words) {
  const std::size_t padding = padding_of(payload.size());
  const std::size_t datagram = headers.size() + payload.size() + padding + kIcrcBytes;
  std::byte start[kLongestStart];
  std::size_t length = write_start(route, datagram, words, start);
  std::memcpy(start + length, headers.data(), kBthBytes);
  start[length + kEcnByte] = kMasked;
  length += kBthBytes;
  static constexpr std::byte kZeros[3]{};
  std::uint32_t crc = extend(0, {start, length});
  crc = extend(crc, headers.subspan(kBthBytes));
  crc = extend(crc, payload);
  return extend(crc, {kZeros, padding});
}

std::uint32_t icrc(const Route& route, std::span<const std::byte> covered, Ipv4Words words) {
  return icrc(route, covered, {}, words);
}

void store_icrc(std::byte* at, std::uint32_t crc) { std::memcpy(at, &crc, sizeof crc); }

std::uint32_t load_icrc(const std::byte* at) {
  std::uint32_t crc;
  std::memcpy(&crc, at, sizeof crc);
  return crc;
}

std::uint32_t RouteCrc::of(std::span<const std::byte> covered, Ipv4Words words) {
  const bool usual = words.fragment == 0x4000 && words.identification < kByIdentification.size();
  if (!usual) [[unlikely]]
    return icrc(route_, covered, words);
  if (covered.size() != length_) {
    std::byte bytes[kLongestStart];
    start_ = extend(0, {bytes, write_start(route_, covered.size() + kIcrcBytes, {}, bytes)});
    length_ = covered.size();
  }
  const std::uint32_t start = route_.v6 ? start_ : start_ ^ kByIdentification[words.identification];
  const auto ecn_byte = static_cast<std::uint8_t>(covered[kEcnByte] ^ kMasked);
  return extend(start ^ kByEcnByte[ecn_byte], covered);
}

std::optional<Ipv4Words> check_icrc(const Route& route, std::span<const std::byte> datagram,
                                    Ipv4Words expected) {
  RouteCrc once(route);
  return check_icrc(once, datagram, expected);
}

std::optional<Ipv4Words> check_icrc(RouteCrc& route, std::span<const std::byte> datagram,
                                    Ipv4Words expected) {
  if (datagram.size() < kBthBytes + kIcrcBytes) return std::nullopt;
  const auto covered = datagram.first(datagram.size() - kIcrcBytes);
  const std::uint32_t difference =
      route.of(covered, expected) ^ load_icrc(covered.data() + covered.size());
  if (difference == 0) return expected;
  if (route.route().v6) return std::nullopt;
  const std::size_t behind = kBehindWords + covered.size();
  const std::uint32_t words = __builtin_bswap32(cause_of(difference, behind));
  const Ipv4Words found{static_cast<std::uint16_t>(expected.identification ^ words >> 16),
                        static_cast<std::uint16_t>(expected.fragment ^ words)};
  const bool whole = found.fragment == 0x4000 || found.fragment == 0;
  return whole ? std::optional(found) : std::nullopt;
}

}  // namespace weft::wire
