// SPDX-License-Identifier: BSD-2-Clause
// Which packets that came to a port were dropped, and why?
#include "roce/packet_drops.h"

namespace weft::roce {

std::uint64_t sum(const PacketDrops& drops) {
  return drops.malformed + drops.wrong_crc + drops.wrong_pkey + drops.wrong_queue_pair +
         drops.wrong_queue_key + drops.unknown_flow + drops.wrong_peer + drops.forged +
         drops.not_foreign;
}

std::string text_of(std::initializer_list<CountedReason> reasons) {
  std::string text;
  for (const auto& [count, reason] : reasons) {
    if (count == 0) continue;
    if (!text.empty()) text += ", ";
    text += std::to_string(count) + " " + reason;
  }
  return text;
}

std::string text_of(const PacketDrops& drops) {
  return text_of({{drops.malformed, "malformed"},
                  {drops.wrong_crc, "with a wrong ICRC"},
                  {drops.wrong_pkey, "with a wrong P_Key"},
                  {drops.wrong_queue_pair, "for another queue pair"},
                  {drops.wrong_queue_key, "with a wrong Q_Key"},
                  {drops.unknown_flow, "of no known flow"},
                  {drops.wrong_peer, "of another peer's flow"},
                  {drops.forged, "handed on by a stranger"},
                  {drops.not_foreign, "handed on, but of no foreign peer"}});
}

}  // namespace weft::roce
