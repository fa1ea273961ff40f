// SPDX-License-Identifier: BSD-2-Clause
// What do two connection managers say to each other? (IBTA 12.6 to 12.11)
//
// Where each member stands is said once, in the functions fields() below: a Reader and a Writer are
// led over the same description.
#include "wire/cm_message.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "wire/endian.h"

namespace weft::wire {
namespace {

constexpr std::uint8_t kBaseVersion = 1;
constexpr std::uint8_t kClass = 0x07;
constexpr std::uint8_t kClassVersion = 2;
constexpr std::uint8_t kMethodSend = 0x03;

// Takes numbers from consecutive bits, the most significant first.
class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  template <class T>
  void bits(T& value, unsigned count) {
    std::uint64_t read = 0;
    while (count > 0) {  // what this byte has of it
      const auto width = std::min<unsigned>(count, 8 - at_ % 8);
      const auto byte = std::to_integer<unsigned>(bytes_[at_ / 8]);
      read = read << width | (byte >> (8 - at_ % 8 - width) & ((1U << width) - 1));
      at_ += width;
      count -= width;
    }
    value = static_cast<T>(read);
  }
  template <std::size_t kCount>
  void bytes(std::array<std::byte, kCount>& value) {
    std::copy_n(bytes_.begin() + static_cast<std::ptrdiff_t>(at_ / 8), kCount, value.begin());
    at_ += 8 * kCount;
  }
  void reserved(unsigned count) { at_ += count; }

 private:
  std::span<const std::byte> bytes_;
  std::size_t at_ = 0;
};

// Puts numbers into consecutive bits of zeros.
class Writer {
 public:
  explicit Writer(std::span<std::byte> bytes) : bytes_(bytes) {}

  template <class T>
  void bits(const T& value, unsigned count) {
    const auto written = static_cast<std::uint64_t>(value);
    while (count > 0) {  // what this byte takes of it
      const auto width = std::min<unsigned>(count, 8 - at_ % 8);
      count -= width;
      const auto part = static_cast<unsigned>(written >> count) & ((1U << width) - 1);
      bytes_[at_ / 8] |= static_cast<std::byte>(part << (8 - at_ % 8 - width));
      at_ += width;
    }
  }
  template <std::size_t kCount>
  void bytes(const std::array<std::byte, kCount>& value) {
    std::copy_n(value.begin(), kCount, bytes_.begin() + static_cast<std::ptrdiff_t>(at_ / 8));
    at_ += 8 * kCount;
  }
  void reserved(unsigned count) { at_ += count; }

 private:
  std::span<std::byte> bytes_;
  std::size_t at_ = 0;
};

template <class FieldCodec>
void ids(FieldCodec& codec, CmIds& m) {
  codec.bits(m.local_id, 32);
  codec.bits(m.remote_id, 32);
}

template <class FieldCodec>
void path_fields(FieldCodec& codec, CmPath& path) {
  codec.bits(path.local_lid, 16);
  codec.bits(path.remote_lid, 16);
  codec.bytes(path.local_gid);
  codec.bytes(path.remote_gid);
  codec.bits(path.flow_label, 20);
  codec.reserved(6);
  codec.bits(path.packet_rate, 6);
  codec.bits(path.traffic_class, 8);
  codec.bits(path.hop_limit, 8);
  codec.bits(path.service_level, 4);
  codec.bits(path.subnet_local, 1);
  codec.reserved(3);
  codec.bits(path.local_ack_timeout, 5);
  codec.reserved(3);
}

template <class FieldCodec>
void fields(FieldCodec& codec, CmReq& m) {
  codec.bits(m.local_id, 32);
  codec.reserved(8);
  codec.bits(m.vendor, 24);
  codec.bits(m.service, 64);
  codec.bits(m.ca_guid, 64);
  codec.reserved(32);
  codec.bits(m.queue_key, 32);
  codec.bits(m.qpn, 24);
  codec.bits(m.responder_resources, 8);
  codec.bits(m.eecn, 24);
  codec.bits(m.initiator_depth, 8);
  codec.bits(m.remote_eecn, 24);
  codec.bits(m.remote_response_timeout, 5);
  codec.bits(m.transport, 2);
  codec.bits(m.flow_control, 1);
  codec.bits(m.starting_psn, 24);
  codec.bits(m.local_response_timeout, 5);
  codec.bits(m.retry_count, 3);
  codec.bits(m.pkey, 16);
  codec.bits(m.path_mtu, 4);
  codec.bits(m.rdc_exists, 1);
  codec.bits(m.rnr_retry, 3);
  codec.bits(m.max_cm_retries, 4);
  codec.bits(m.shared_receive, 1);
  codec.bits(m.extended_transport, 3);
  path_fields(codec, m.primary);
  path_fields(codec, m.alternate);
  codec.bytes(m.data);
}

template <class FieldCodec>
void fields(FieldCodec& codec, CmMra& m) {
  ids(codec, m);
  codec.bits(m.message, 2);
  codec.reserved(6);
  codec.bits(m.service_timeout, 5);
  codec.reserved(3);
  codec.bytes(m.data);
}

template <class FieldCodec>
void fields(FieldCodec& codec, CmRej& m) {
  ids(codec, m);
  codec.bits(m.message, 2);
  codec.reserved(6);
  codec.bits(m.info_length, 7);
  codec.reserved(1);
  codec.bits(m.reason, 16);
  codec.bytes(m.info);
  codec.bytes(m.data);
}

template <class FieldCodec>
void fields(FieldCodec& codec, CmRep& m) {
  ids(codec, m);
  codec.bits(m.queue_key, 32);
  codec.bits(m.qpn, 24);
  codec.bits(m.vendor_high, 8);
  codec.bits(m.eecn, 24);
  codec.bits(m.vendor_middle, 8);
  codec.bits(m.starting_psn, 24);
  codec.bits(m.vendor_low, 8);
  codec.bits(m.responder_resources, 8);
  codec.bits(m.initiator_depth, 8);
  codec.bits(m.target_ack_delay, 5);
  codec.bits(m.failover_accepted, 2);
  codec.bits(m.flow_control, 1);
  codec.bits(m.rnr_retry, 3);
  codec.bits(m.shared_receive, 1);
  codec.reserved(4);
  codec.bits(m.ca_guid, 64);
  codec.bytes(m.data);
}

template <class FieldCodec>
void fields(FieldCodec& codec, CmRtu& m) {
  ids(codec, m);
  codec.bytes(m.data);
}

template <class FieldCodec>
void fields(FieldCodec& codec, CmDreq& m) {
  ids(codec, m);
  codec.bits(m.remote_qpn, 24);
  codec.reserved(8);
  codec.bytes(m.data);
}

template <class FieldCodec>
void fields(FieldCodec& codec, CmSidrReq& m) {
  codec.bits(m.request, 32);
  codec.bits(m.pkey, 16);
  codec.reserved(16);
  codec.bits(m.service, 64);
  codec.bytes(m.data);
}

template <class FieldCodec>
void fields(FieldCodec& codec, CmSidrRep& m) {
  codec.bits(m.request, 32);
  codec.bits(m.status, 8);
  codec.bits(m.info_length, 8);
  codec.reserved(16);
  codec.bits(m.qpn, 24);
  codec.reserved(8);
  codec.bits(m.service, 64);
  codec.bits(m.queue_key, 32);
  codec.bytes(m.info);
  codec.bytes(m.data);
}

template <class FieldCodec>
void fields(FieldCodec& codec, CmLap& m) {
  ids(codec, m);
  codec.reserved(32);
  codec.bits(m.remote_qpn, 24);
  codec.bits(m.response_timeout, 5);
  codec.reserved(3);
  codec.reserved(32);
  codec.bytes(m.path);
  codec.bytes(m.data);
}

template <class FieldCodec>
void fields(FieldCodec& codec, CmApr& m) {
  ids(codec, m);
  codec.bits(m.info_length, 8);
  codec.bits(m.status, 8);
  codec.reserved(16);
  codec.bytes(m.info);
  codec.bytes(m.data);
}

constexpr std::uint16_t kReqAttribute = 0x10;
constexpr std::uint16_t kSidrReqAttribute = 0x17;
// The attribute of each kind of message, in the order of CmMessage.
constexpr std::array<std::uint16_t, std::variant_size_v<CmMessage>> kAttributes{
    kReqAttribute, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16, kSidrReqAttribute, 0x18, 0x19, 0x1A};

// An empty message of that attribute, or nothing.
template <std::size_t... kIndex>
std::optional<CmMessage> message_of(std::uint16_t attribute, std::index_sequence<kIndex...>) {
  std::optional<CmMessage> made;
  ((kAttributes[kIndex] == attribute ? void(made.emplace(std::in_place_index<kIndex>)) : void()),
   ...);
  return made;
}

struct MadHeader {
  std::uint8_t base_version = kBaseVersion;
  std::uint8_t management_class = kClass;
  std::uint8_t class_version = kClassVersion;
  std::uint8_t method = kMethodSend;
  std::uint16_t attribute = 0;
};

template <class FieldCodec, class H, class M>
void header_fields(FieldCodec& codec, H& header, M& mad) {
  codec.bits(header.base_version, 8);
  codec.bits(header.management_class, 8);
  codec.bits(header.class_version, 8);
  codec.bits(header.method, 8);
  codec.bits(mad.status, 16);
  codec.reserved(16);
  codec.bits(mad.transaction, 64);
  codec.bits(header.attribute, 16);
  codec.reserved(16);
  codec.bits(mad.modifier, 32);
}

template <class FieldCodec, class H>
void ip_fields(FieldCodec& codec, H& header) {
  codec.bits(header.version, 8);
  codec.bits(header.ip_version, 4);
  codec.reserved(4);
  codec.bits(header.source_port, 16);
  codec.bytes(header.source);
  codec.bytes(header.destination);
}

}  // namespace

std::optional<CmMad> parse_cm(std::span<const std::byte> payload) {
  if (payload.size() != kMadBytes) return std::nullopt;
  Reader reader(payload);
  MadHeader header;
  CmMad mad;
  header_fields(reader, header, mad);
  const bool ours = header.base_version == kBaseVersion && header.management_class == kClass &&
                    header.class_version == kClassVersion && header.method == kMethodSend;
  if (!ours) return std::nullopt;
  constexpr auto kKinds = std::make_index_sequence<kAttributes.size()>();
  std::optional<CmMessage> message = message_of(header.attribute, kKinds);
  if (!message) return std::nullopt;
  std::visit([&](auto& m) { fields(reader, m); }, *message);
  mad.message = *message;
  return mad;
}

std::optional<std::uint64_t> transaction_of_request(std::span<const std::byte> payload) {
  constexpr std::size_t kTransactionAt = 8;
  constexpr std::size_t kAttributeAt = 16;
  if (payload.size() < kMadBytes) return std::nullopt;
  const auto attribute = load<std::uint16_t>(payload.data() + kAttributeAt);
  if (attribute != kReqAttribute && attribute != kSidrReqAttribute) return std::nullopt;
  return load<std::uint64_t>(payload.data() + kTransactionAt);
}

std::array<std::byte, kMadBytes> write_cm(const CmMad& mad) {
  std::array<std::byte, kMadBytes> out{};
  Writer writer(out);
  MadHeader header;
  header.attribute = kAttributes[mad.message.index()];
  header_fields(writer, header, mad);
  CmMessage message = mad.message;
  std::visit([&](auto& m) { fields(writer, m); }, message);
  return out;
}

CmIpHeader parse_ip_header(std::span<const std::byte, CmIpHeader::kBytes> data) {
  Reader reader(data);
  CmIpHeader header;
  ip_fields(reader, header);
  return header;
}

void write_ip_header(const CmIpHeader& header, std::span<std::byte, CmIpHeader::kBytes> data) {
  std::fill(data.begin(), data.end(), std::byte{});
  Writer writer(data);
  ip_fields(writer, header);
}

}  // namespace weft::wire
