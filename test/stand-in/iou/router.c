/* What the interfaces do: ARP and IPv4 echo, over Ethernet or HDLC. Nothing is forwarded. */
#include "iou.h"
#include <stdio.h>
#include <string.h>

enum { ARP = 0x0806, IP = 0x0800, SLARP = 0x8035 };
enum { ETHERNET_HEADER = 14, ETHERNET_LEAST = 60, HDLC_HEADER = 4, IP_HEADER = 20, ICMP_HEADER = 8 };
enum { ECHO_REPLY = 0, ECHO_REQUEST = 8 };
enum { ARP_RETRY_MS = 500, ARP_KEPT_MS = 60000, ARP_ENTRIES = 32 };

struct interface interfaces[PORTS];

static const uint8_t broadcast[6] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff};

static struct {
  unsigned port;
  uint32_t address;
  uint8_t mac[6];
  int64_t until;
} neighbours[ARP_ENTRIES];

static struct {
  uint32_t sent, seen;
  int64_t due;
} keepalives[PORTS];

/* The ping that runs. One request at a time is under way, or waits for the address that it goes to. */
static struct {
  bool is_running, is_waiting;
  struct ping wanted;
  unsigned port, sent, received, sequence;
  int64_t sent_at, deadline, ask_again;
  int64_t least, most, sum;
} ping;

void router_reset(void) {
  memset(interfaces, 0, sizeof interfaces);
  memset(neighbours, 0, sizeof neighbours);
  for (unsigned port = 0; port < (options.ethernet + options.serial) * UNITS; port++) {
    interfaces[port].is_there = true;
    interfaces[port].is_serial = port / UNITS >= options.ethernet;
    interfaces[port].keepalive = DEFAULT_KEEPALIVE;
  }
}

void interface_mac(unsigned port, uint8_t mac[6]) {
  const uint8_t bytes[6] = {0xaa, 0xbb, 0xcc, (uint8_t)(options.id >> 8), (uint8_t)options.id,
                            (uint8_t)(port / UNITS + port % UNITS * 16)};
  memcpy(mac, bytes, 6);
}

static int64_t next_keepalive(unsigned port) { return now_ms() + interfaces[port].keepalive * 1000; }

/* What was learnt there may not be so any more. */
void interface_changed(unsigned port) {
  keepalives[port].due = next_keepalive(port);
  for (size_t i = 0; i < ARP_ENTRIES; i++)
    if (neighbours[i].port == port) neighbours[i].until = 0;
}

static void send_frame(unsigned port, const uint8_t *frame, size_t length) {
  interfaces[port].packets_out++;
  netio_send(port, frame, length);
}

/* `packet` has room for the header before it and for padding behind it. */
static void send_ethernet(unsigned port, const uint8_t to[6], unsigned type, uint8_t *packet, size_t length) {
  uint8_t *frame = packet - ETHERNET_HEADER;
  memcpy(frame, to, 6);
  interface_mac(port, frame + 6);
  put16(frame + 12, type);
  length += ETHERNET_HEADER;
  if (length < ETHERNET_LEAST) memset(frame + length, 0, ETHERNET_LEAST - length);
  send_frame(port, frame, length < ETHERNET_LEAST ? ETHERNET_LEAST : length);
}

static void send_hdlc(unsigned port, unsigned first, unsigned type, uint8_t *packet, size_t length) {
  uint8_t *frame = packet - HDLC_HEADER;
  put16(frame, first);
  put16(frame + 2, type);
  send_frame(port, frame, length + HDLC_HEADER);
}

static void send_arp(unsigned port, unsigned operation, const uint8_t to_mac[6], uint32_t to) {
  uint8_t frame[ETHERNET_LEAST], *arp = frame + ETHERNET_HEADER;
  const uint8_t start[8] = {0, 1, 8, 0, 6, 4, 0, (uint8_t)operation};
  memcpy(arp, start, sizeof start);
  interface_mac(port, arp + 8);
  put32(arp + 14, interfaces[port].address);
  if (operation == 1)
    memset(arp + 18, 0, 6);
  else
    memcpy(arp + 18, to_mac, 6);
  put32(arp + 24, to);
  send_ethernet(port, to_mac, ARP, arp, 28);
}

static const uint8_t *neighbour(unsigned port, uint32_t address) {
  for (size_t i = 0; i < ARP_ENTRIES; i++) {
    bool is_it = neighbours[i].port == port && neighbours[i].address == address;
    if (is_it && neighbours[i].until > now_ms()) return neighbours[i].mac;
  }
  return NULL;
}

/* Takes the place of what is known of the address, else of the oldest. */
static void learn(unsigned port, uint32_t address, const uint8_t mac[6]) {
  size_t place = 0;
  for (size_t i = 0; i < ARP_ENTRIES; i++) {
    if (neighbours[i].until < neighbours[place].until) place = i;
    if (neighbours[i].port != port || neighbours[i].address != address) continue;
    place = i;
    break;
  }
  neighbours[place].port = port;
  neighbours[place].address = address;
  memcpy(neighbours[place].mac, mac, 6);
  neighbours[place].until = now_ms() + ARP_KEPT_MS;
}

/* Of a message that is sent to `to`; `message` has room for the headers before it. */
static void send_icmp(unsigned port, const uint8_t *to_mac, uint32_t to, uint8_t *message, size_t length) {
  static unsigned next_id;
  uint8_t *packet = message - IP_HEADER;
  put16(message + 2, 0);
  put16(message + 2, ~ones_sum(message, length) & 0xffff);
  memset(packet, 0, IP_HEADER);
  packet[0] = 0x45;
  put16(packet + 2, (unsigned)length + IP_HEADER);
  put16(packet + 4, next_id++ & 0xffff);
  packet[8] = 255;
  packet[9] = 1;
  put32(packet + 12, interfaces[port].address);
  put32(packet + 16, to);
  put16(packet + 10, ~ones_sum(packet, IP_HEADER) & 0xffff);
  if (interfaces[port].is_serial)
    send_hdlc(port, 0x0f00, IP, packet, length + IP_HEADER);
  else
    send_ethernet(port, to_mac, IP, packet, length + IP_HEADER);
}

bool ping_is_running(void) { return ping.is_running; }

static void ping_end(void) {
  ping.is_running = false;
  unsigned percent = ping.sent == 0 ? 0 : ping.received * 100 / ping.sent;
  say("\nSuccess rate is %u percent (%u/%u)", percent, ping.received, ping.sent);
  if (ping.received > 0)
    say(", round-trip min/avg/max = %d/%d/%d ms", (int)ping.least, (int)(ping.sum / ping.received), (int)ping.most);
  say("\n");
}

void ping_abort(void) {
  if (ping.is_running) ping_end();
}

static void ping_transmit(const uint8_t *mac) {
  /* Before the message are the headers; FRAME_MAX is for all of them. */
  uint8_t frame[FRAME_MAX + ETHERNET_HEADER] = {0}, *message = frame + ETHERNET_HEADER + IP_HEADER;
  size_t length = ping.wanted.size - IP_HEADER;
  message[0] = ECHO_REQUEST;
  put16(message + 4, options.id);
  put16(message + 6, ping.sequence & 0xffff);
  for (size_t i = ICMP_HEADER; i < length; i++) message[i] = i % 2 == 0 ? 0xab : 0xcd;
  ping.is_waiting = false;
  ping.sent_at = now_ms();
  send_icmp(ping.port, mac, ping.wanted.address, message, length);
}

static void ping_ask(void) {
  ping.is_waiting = true;
  ping.ask_again = now_ms() + ARP_RETRY_MS;
  send_arp(ping.port, 1, broadcast, ping.wanted.address);
}

/* The interface that the address is on, or PORTS. */
static unsigned way_to(uint32_t address) {
  for (unsigned port = 0; port < PORTS; port++) {
    const struct interface *i = &interfaces[port];
    if (i->is_up && i->address != 0 && (i->address & i->mask) == (address & i->mask)) return port;
  }
  return PORTS;
}

/* The last request is over: the sign for it, and the next one. What needs no waiting is done in this call. */
static void ping_next(bool is_first) {
  for (; is_first || ping.sent < ping.wanted.repeat; is_first = false) {
    if (ping.sent > 0 && ping.sent % 70 == 0) say("\n");
    ping.sent++;
    ping.sequence++;
    ping.deadline = now_ms() + ping.wanted.timeout_ms;
    ping.port = way_to(ping.wanted.address);
    if (ping.port == PORTS) {
      say(".");
    } else if (interfaces[ping.port].address == ping.wanted.address) {
      say("!");
      ping.received++;
      ping.least = ping.most = 1;
      ping.sum++;
    } else {
      const uint8_t *mac = neighbour(ping.port, ping.wanted.address);
      if (mac == NULL && !interfaces[ping.port].is_serial)
        ping_ask();
      else
        ping_transmit(mac);
      return;
    }
  }
  ping_end();
}

void ping_start(const struct ping *wanted) {
  unsigned sequence = ping.sequence;
  memset(&ping, 0, sizeof ping);
  ping.is_running = true;
  ping.wanted = *wanted;
  ping.sequence = sequence;
  ping_next(true);
}

static void ping_answered(unsigned sequence, uint32_t from) {
  if (!ping.is_running || ping.is_waiting) return;
  if (from != ping.wanted.address || sequence != (ping.sequence & 0xffff)) return;
  int64_t took = now_ms() - ping.sent_at;
  if (took < 1) took = 1;
  ping.received++;
  ping.sum += took;
  if (ping.received == 1 || took < ping.least) ping.least = took;
  if (took > ping.most) ping.most = took;
  say("!");
  ping_next(false);
}

static void receive_arp(unsigned port, const uint8_t *arp, size_t length) {
  static const uint8_t start[6] = {0, 1, 8, 0, 6, 4};
  if (length < 28 || memcmp(arp, start, sizeof start) != 0 || interfaces[port].address == 0) return;
  unsigned operation = get16(arp + 6);
  uint32_t from = get32(arp + 14);
  bool is_for_us = get32(arp + 24) == interfaces[port].address;
  if (from == 0 || from == interfaces[port].address) return;
  if (is_for_us || neighbour(port, from) != NULL) learn(port, from, arp + 8);
  if (is_for_us && operation == 1) send_arp(port, 2, arp + 8, from);
  bool is_awaited = ping.is_running && ping.is_waiting && ping.port == port && from == ping.wanted.address;
  if (is_awaited && is_for_us) ping_transmit(arp + 8);
}

static void receive_ip(unsigned port, const uint8_t *from_mac, const uint8_t *packet, size_t length) {
  if (length < IP_HEADER || packet[0] >> 4 != 4) return;
  size_t header = (packet[0] & 15u) * 4, total = get16(packet + 2);
  bool is_fragment = (get16(packet + 6) & 0x3fff) != 0;
  if (header < IP_HEADER || total < header + ICMP_HEADER || total > length || is_fragment) return;
  if (ones_sum(packet, header) != 0xffff || packet[9] != 1) return;
  if (interfaces[port].address == 0 || get32(packet + 16) != interfaces[port].address) return;
  const uint8_t *icmp = packet + header;
  size_t size = total - header;
  uint32_t from = get32(packet + 12);
  if (ones_sum(icmp, size) != 0xffff) return;
  if (icmp[0] == ECHO_REPLY && get16(icmp + 4) == options.id) ping_answered(get16(icmp + 6), from);
  if (icmp[0] != ECHO_REQUEST) return;
  uint8_t frame[FRAME_MAX + ETHERNET_LEAST], *answer = frame + ETHERNET_HEADER + IP_HEADER;
  memcpy(answer, icmp, size);
  answer[0] = ECHO_REPLY;
  send_icmp(port, from_mac, from, answer, size);
}

static void receive_ethernet(unsigned port, const uint8_t *frame, size_t length) {
  uint8_t mac[6];
  interface_mac(port, mac);
  if (length < ETHERNET_HEADER || (memcmp(frame, mac, 6) != 0 && memcmp(frame, broadcast, 6) != 0)) return;
  const uint8_t *packet = frame + ETHERNET_HEADER;
  if (get16(frame + 12) == ARP) receive_arp(port, packet, length - ETHERNET_HEADER);
  if (get16(frame + 12) == IP) receive_ip(port, frame + 6, packet, length - ETHERNET_HEADER);
}

static void receive_hdlc(unsigned port, const uint8_t *frame, size_t length) {
  if (length < HDLC_HEADER || (frame[0] != 0x0f && frame[0] != 0x8f)) return;
  const uint8_t *packet = frame + HDLC_HEADER;
  if (get16(frame + 2) == IP) receive_ip(port, NULL, packet, length - HDLC_HEADER);
  /* Code 2 is a keepalive; the number after it is what the other side sends, the next what it saw of us. */
  if (get16(frame + 2) == SLARP && length >= HDLC_HEADER + 14 && get32(packet) == 2)
    keepalives[port].seen = get32(packet + 4);
}

void router_receive(unsigned port, const uint8_t *frame, size_t length) {
  if (!interfaces[port].is_up) return;
  interfaces[port].packets_in++;
  if (interfaces[port].is_serial)
    receive_hdlc(port, frame, length);
  else
    receive_ethernet(port, frame, length);
}

static bool has_keepalives(unsigned port) {
  return options.keepalives && interfaces[port].is_serial && interfaces[port].is_up;
}

static void send_keepalives(int64_t now) {
  for (unsigned port = 0; port < PORTS; port++) {
    if (!has_keepalives(port) || now < keepalives[port].due) continue;
    keepalives[port].due = next_keepalive(port);
    uint8_t frame[HDLC_HEADER + 14], *packet = frame + HDLC_HEADER;
    put32(packet, 2);
    put32(packet + 4, ++keepalives[port].sent);
    put32(packet + 8, keepalives[port].seen);
    put16(packet + 12, 0xffff);
    send_hdlc(port, 0x8f00, SLARP, packet, 14);
  }
}

int64_t router_deadline(void) {
  int64_t first = -1;
  for (unsigned port = 0; port < PORTS; port++)
    if (has_keepalives(port) && (first < 0 || keepalives[port].due < first)) first = keepalives[port].due;
  if (!ping.is_running) return first;
  int64_t of_ping = ping.is_waiting && ping.ask_again < ping.deadline ? ping.ask_again : ping.deadline;
  return first < 0 || of_ping < first ? of_ping : first;
}

void router_tick(void) {
  int64_t now = now_ms();
  send_keepalives(now);
  if (!ping.is_running) return;
  if (now >= ping.deadline) {
    say(".");
    ping_next(false);
  } else if (ping.is_waiting && now >= ping.ask_again) {
    ping_ask();
  }
}
