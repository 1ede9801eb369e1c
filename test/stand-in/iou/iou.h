/* A program that tests run where an IOU image belongs. Numbers are in the host's order wherever they are not bytes. */
#ifndef IOU_H
#define IOU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { UNITS = 4, BAYS = 16, PORTS = UNITS * BAYS, FRAME_MAX = 4096, ID_MAX = 511 };

struct options {
  unsigned ethernet, serial; /* bays */
  unsigned nvram_kb, ram_mb;
  bool keepalives, remote_console;
  const char *config;
  unsigned id;
};
extern struct options options;

/* iou.c */
void fail(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));
/* Is removed when the program ends by itself or by a signal, and stays when it crashes. */
void remove_at_end(const char *path);
int64_t now_ms(void);

static inline unsigned get16(const uint8_t *at) { return (unsigned)at[0] << 8 | at[1]; }
static inline uint32_t get32(const uint8_t *at) { return (uint32_t)get16(at) << 16 | get16(at + 2); }
static inline void put16(uint8_t *at, unsigned value) {
  at[0] = (uint8_t)(value >> 8);
  at[1] = (uint8_t)value;
}
static inline void put32(uint8_t *at, uint32_t value) {
  put16(at, value >> 16);
  put16(at + 2, value);
}
/* The ones' complement sum of big-endian words: 0xffff over what has its checksum in it. */
unsigned ones_sum(const uint8_t *bytes, size_t length);

/* netio.c: where the interfaces lead. A port is bay * UNITS + unit here, and bay + unit * 16 in a datagram. */
void netmap_read(void);
int netio_open(void);
void netio_path(char *path, size_t size, const char *name);
int netio_bind(const char *path);
void netio_send(unsigned port, const uint8_t *frame, size_t length);
/* The length of the next frame for us, or -1 when there is none; 0 for a datagram that is not one. */
ssize_t netio_receive(unsigned *port, uint8_t *frame);

/* nvram.c */
struct configs {
  char *startup, *private; /* allocated; NULL when there is none */
};
/* Makes the file when there is none, and says on the console what is wrong with it. */
struct configs nvram_load(void);
/* NULL, or why it could not be written. */
const char *nvram_save(const char *startup, const char *private);

/* router.c */
struct interface {
  bool is_there, is_serial, is_up;
  uint32_t address, mask;
  unsigned keepalive; /* seconds */
  char description[201];
  unsigned long packets_in, packets_out;
};
enum { DEFAULT_KEEPALIVE = 10 };
extern struct interface interfaces[PORTS];
void router_reset(void);
void router_receive(unsigned port, const uint8_t *frame, size_t length);
void interface_mac(unsigned port, uint8_t mac[6]);
void interface_changed(unsigned port);
struct ping {
  uint32_t address;
  unsigned repeat, size, timeout_ms;
};
void ping_start(const struct ping *wanted);
bool ping_is_running(void);
void ping_abort(void);
/* When router_tick() is wanted; -1 for never. */
int64_t router_deadline(void);
void router_tick(void);

/* console.c */
void console_open(void);
void console_boot(void);
/* The descriptor to wait for, or -1 while nothing more can be taken. */
int console_input(void);
void console_read(void);
/* Does what was typed, up to a ping that runs: the rest waits for its end. */
void console_continue(void);
void say(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
