// SPDX-License-Identifier: BSD-2-Clause
// Which bytes do the messages of the connection manager have on the wire?
//
//   weft_connection_messages FILE
//
// Writes a pcapng file with one packet to port 4791 for each message, in the order of their
// attributes. connection_messages.py has the same values.
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <span>
#include <vector>

#include "wire/cm_message.h"
#include "wire/icrc.h"
#include "wire/opcode.h"
#include "wire/packet.h"
#include "wire/pcapng.h"

namespace {

using namespace weft;
using namespace weft::wire;

using Bytes = std::vector<std::byte>;

constexpr std::uint64_t kTransaction = 0x1122'3344'5566'7700;  // and the attribute
constexpr std::uint64_t kGuid = 0x0123'4567'89AB'CDEF;
constexpr std::uint32_t kRequester = 0x9C40'0002;
constexpr std::uint32_t kResponder = 0xC350'0003;
constexpr std::uint32_t kRequesterQpn = 0x9C'4001;
constexpr std::uint32_t kResponderQpn = 0xC3'5001;

template <std::size_t kBytes>
void fill(std::array<std::byte, kBytes>& data, std::uint8_t first) {
  for (std::size_t i = 0; i < kBytes; ++i) data[i] = static_cast<std::byte>(first + i);
}

// ::ffff:192.0.2.LAST, or the address alone.
Gid gid(std::uint8_t last, std::byte prefix = std::byte{0xFF}) {
  Gid made{};
  made[10] = made[11] = prefix;
  made[12] = std::byte{192};
  made[14] = std::byte{2};
  made[15] = std::byte{last};
  return made;
}

CmPath path() {
  CmPath made;
  made.local_gid = gid(1);
  made.remote_gid = gid(2);
  made.flow_label = 0xFEDCB;
  made.packet_rate = 18;
  made.traffic_class = 0x68;
  made.hop_limit = 64;
  made.service_level = 3;
  made.subnet_local = true;
  made.local_ack_timeout = 17;
  return made;
}

CmReq req() {
  CmReq made;
  made.local_id = kRequester;
  made.service = service_of(kPortSpaceTcp, 7174);
  made.ca_guid = kGuid;
  made.queue_key = 0x5566'7788;
  made.qpn = kRequesterQpn;
  made.responder_resources = 7;
  made.eecn = 0x7B'0001;
  made.initiator_depth = 6;
  made.remote_eecn = 0x5A'0001;
  made.remote_response_timeout = 20;
  made.transport = 0;
  made.flow_control = true;
  made.starting_psn = 0x12'3456;
  made.local_response_timeout = 19;
  made.retry_count = 5;
  made.pkey = 0xFFFF;
  made.path_mtu = 3;
  made.rdc_exists = true;
  made.rnr_retry = 6;
  made.max_cm_retries = 15;
  made.shared_receive = true;
  made.extended_transport = 1;
  made.primary = path();
  CmIpHeader header;
  header.source_port = 0x1C07;
  header.source = gid(1, {});
  header.destination = gid(2, {});
  fill(made.data, 0x10);
  write_ip_header(header, std::span(made.data).first<CmIpHeader::kBytes>());
  return made;
}

CmRep rep() {
  CmRep made;
  made.local_id = kResponder;
  made.remote_id = kRequester;
  made.queue_key = 0x1122'3344;
  made.qpn = kResponderQpn;
  made.eecn = 0x5A'0001;
  made.starting_psn = 0x65'4321;
  made.responder_resources = 5;
  made.initiator_depth = 4;
  made.target_ack_delay = 15;
  made.failover_accepted = 1;
  made.flow_control = true;
  made.rnr_retry = 7;
  made.shared_receive = true;
  made.ca_guid = ~kGuid;
  fill(made.data, 0x20);
  return made;
}

CmMra mra() {
  CmMra made{kResponder, kRequester, 1, 19, {}};
  fill(made.data, 0x30);
  return made;
}

CmRej rej() {
  CmRej made{kResponder, kRequester, 1, 8, CmReason::kConsumer, {}, {}};
  fill(made.info, 0x40);
  fill(made.data, 0x50);
  return made;
}

CmSidrReq sidr_req() {
  CmSidrReq made{kRequester, 0xFFFF, service_of(kPortSpaceUdp, 7175), {}};
  fill(made.data, 0x60);
  return made;
}

CmSidrRep sidr_rep() {
  CmSidrRep made{kRequester,  1,  4, kResponderQpn, service_of(kPortSpaceUdp, 7175),
                 0x1234'5678, {}, {}};
  fill(made.info, 0x70);
  fill(made.data, 0x80);
  return made;
}

CmLap lap() {
  CmLap made{kRequester, kResponder, kResponderQpn, 18, {}, {}};
  fill(made.path, 0x90);
  fill(made.data, 0xA0);
  return made;
}

CmApr apr() {
  CmApr made{kResponder, kRequester, 8, 2, {}, {}};
  fill(made.info, 0xB0);
  fill(made.data, 0xC0);
  return made;
}

template <class Message>
Message with_ids(std::uint32_t local, std::uint32_t remote, std::uint8_t first) {
  Message made;
  made.local_id = local;
  made.remote_id = remote;
  fill(made.data, first);
  return made;
}

CmDreq dreq() {
  auto made = with_ids<CmDreq>(kRequester, kResponder, 0xE0);
  made.remote_qpn = kResponderQpn;
  return made;
}

// In the order of their attributes, of which 0x10 is the first.
std::vector<CmMessage> messages() {
  return {req(),
          mra(),
          rej(),
          rep(),
          with_ids<CmRtu>(kRequester, kResponder, 0xD0),
          dreq(),
          with_ids<CmDrep>(kResponder, kRequester, 0xF0),
          sidr_req(),
          sidr_rep(),
          lap(),
          apr()};
}

Route route() {
  Route made;
  made.source = {std::byte{192}, std::byte{0}, std::byte{2}, std::byte{1}};
  made.destination = {std::byte{192}, std::byte{0}, std::byte{2}, std::byte{2}};
  made.source_port = 49152;
  made.destination_port = kUdpPort;
  return made;
}

Bytes datagram(std::span<const std::byte> mad) {
  Packet packet;
  packet.opcode = opcode_of(Transport::kUnreliableDatagram, Operation::kSendOnly);
  packet.destination = kCmQpn;
  packet.queue_key = kCmQueueKey;
  packet.source = kCmQpn;
  Bytes bytes(header_bytes(packet));
  write_headers(packet, mad.size(), bytes.data());
  bytes.insert(bytes.end(), mad.begin(), mad.end());
  const std::uint32_t crc = icrc(route(), bytes);
  bytes.resize(bytes.size() + kIcrcBytes);
  store_icrc(bytes.data() + bytes.size() - kIcrcBytes, crc);
  return bytes;
}

}  // namespace

int main(int count, char** words) {
  if (count != 2) return 2;
  std::ofstream file(words[1], std::ios::binary);
  const auto append = [&](const Bytes& block) {
    file.write(reinterpret_cast<const char*>(block.data()),
               static_cast<std::streamsize>(block.size()));
  };
  append(capture_header("weft_connection_messages"));
  append(capture_interface("wire"));
  std::uint64_t attribute = 0x10;  // ConnectRequest, the first one of messages()
  for (const CmMessage& message : messages()) {
    const auto mad = write_cm({0, kTransaction | attribute++, 0, message});
    append(capture_packet(0, 0, CaptureDirection::kSent, route(), {}, datagram(mad)));
  }
  return file.flush() ? 0 : 1;
}
