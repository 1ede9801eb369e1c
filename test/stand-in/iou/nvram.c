/* The NVRAM file: in its first half the two configurations, from the start, and files in sectors behind them. */
#define _GNU_SOURCE
#include "iou.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { STARTUP_HEADER = 36, PRIVATE_HEADER = 16, SECTOR = 1024, RESERVED = 2 * SECTOR };
enum { STARTUP_MAGIC = 0xabcd, PRIVATE_MAGIC = 0xfedc, FILE_MAGIC = 0xdcba, RAW = 1 };
static const uint32_t base = 0x10000000;

/* Of what we write; an NVRAM that names another keeps it. */
static unsigned version = 0x0f04;

/* Bytes between the startup configuration and the private one. */
static size_t padding(size_t length, size_t half) {
  size_t pad = (4 - length % 4) % 4;
  return pad != 0 && (version <= 0x0f00 || half >= 64 * 1024) ? pad + 4 : pad;
}

static void file_name(char name[32]) { snprintf(name, 32, "nvram_%05u", options.id); }

/* All of the file, made if it is not there; NULL when that cannot be done. */
static uint8_t *read_file(size_t *size) {
  char name[32];
  struct stat found;
  file_name(name);
  int file = open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (file < 0 || fstat(file, &found) != 0) {
    say("%%NVRAM: %s: %s\n", name, strerror(errno));
    if (file >= 0) close(file);
    return NULL;
  }
  size_t wanted = (size_t)options.nvram_kb * 1024;
  if (found.st_size == 0 && ftruncate(file, (off_t)wanted) == 0) found.st_size = (off_t)wanted;
  *size = (size_t)found.st_size;
  uint8_t *bytes = calloc(1, *size + 1);
  bool is_read = bytes != NULL && pread(file, bytes, *size, 0) == (ssize_t)*size;
  close(file);
  if (is_read) return bytes;
  say("%%NVRAM: %s cannot be read\n", name);
  free(bytes);
  return NULL;
}

/* The text that a header of this sort is about: addresses and length are at `fields`, the text is at `at`. */
static char *text_of(const uint8_t *nvram, size_t half, const uint8_t *fields, size_t at, const char *what) {
  uint32_t start = get32(fields), end = get32(fields + 4), length = get32(fields + 8);
  if (start != base + at || end - start != length || length > half - at) {
    say("%%NVRAM: the %s configuration is said to be at %#x to %#x, %u bytes\n", what, start, end, length);
    return NULL;
  }
  return strndup((const char *)nvram + at, length);
}

static struct configs read_configs(uint8_t *nvram, size_t half) {
  struct configs configs = {NULL, NULL};
  unsigned magic = get16(nvram), format = get16(nvram + 2);
  if (magic == 0) return configs;
  if (magic != STARTUP_MAGIC || format != RAW) {
    say("%%NVRAM: unknown format %04x %04x\n", magic, format);
    return configs;
  }
  unsigned found = get16(nvram + 4);
  put16(nvram + 4, 0);
  unsigned wanted = ~ones_sum(nvram, half) & 0xffff;
  if (found != wanted) say("%%NVRAM: bad checksum %04x, expected %04x\n", found, wanted);
  version = get16(nvram + 6);
  configs.startup = text_of(nvram, half, nvram + 8, STARTUP_HEADER, "startup");
  if (configs.startup == NULL) return configs;
  size_t length = get32(nvram + 16), at = STARTUP_HEADER + length + padding(length, half);
  if (at + PRIVATE_HEADER > half || get16(nvram + at) == 0) return configs;
  if (get16(nvram + at) != PRIVATE_MAGIC || get16(nvram + at + 2) != RAW)
    say("%%NVRAM: no private configuration at %zu, but %04x %04x\n", at, get16(nvram + at), get16(nvram + at + 2));
  else
    configs.private = text_of(nvram, half, nvram + at + 4, at + PRIVATE_HEADER, "private");
  return configs;
}

struct configs nvram_load(void) {
  struct configs none = {NULL, NULL};
  size_t size = 0;
  uint8_t *nvram = read_file(&size);
  if (nvram == NULL) return none;
  bool is_right = size == (size_t)options.nvram_kb * 1024;
  if (!is_right) say("%%NVRAM: the file has %zu bytes, not %u KB: it is not used\n", size, options.nvram_kb);
  struct configs configs = is_right ? read_configs(nvram, size / 2) : none;
  free(nvram);
  return configs;
}

/* Where the configurations have to end: at the first sector that has a file in it. */
static size_t limit(const uint8_t *nvram, size_t half) {
  for (size_t at = RESERVED; at + SECTOR <= half; at += SECTOR)
    if (get16(nvram + at) == FILE_MAGIC) return at;
  return half;
}

static void put_header(uint8_t *at, unsigned magic, uint8_t *fields, uint32_t text_at, size_t length) {
  put16(at, magic);
  put16(at + 2, RAW);
  put32(fields, base + text_at);
  put32(fields + 4, base + text_at + (uint32_t)length);
  put32(fields + 8, (uint32_t)length);
}

static void fill(uint8_t *nvram, size_t half, size_t private_at, const char *startup, const char *private) {
  put_header(nvram, STARTUP_MAGIC, nvram + 8, STARTUP_HEADER, strlen(startup));
  put16(nvram + 6, version);
  memcpy(nvram + STARTUP_HEADER, startup, strlen(startup));
  uint8_t *header = nvram + private_at;
  put_header(header, PRIVATE_MAGIC, header + 4, (uint32_t)private_at + PRIVATE_HEADER, strlen(private));
  memcpy(header + PRIVATE_HEADER, private, strlen(private));
  put16(nvram + 4, ~ones_sum(nvram, half) & 0xffff);
}

static const char *write_file(const uint8_t *nvram, size_t size) {
  char name[32];
  file_name(name);
  int file = open(name, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
  if (file < 0) return strerror(errno);
  /* In place, as images do: who watches the file sees it half written. */
  bool is_written = pwrite(file, nvram, size, 0) == (ssize_t)size && ftruncate(file, (off_t)size) == 0;
  close(file);
  return is_written ? NULL : "it cannot be written";
}

const char *nvram_save(const char *startup, const char *private) {
  size_t wanted = (size_t)options.nvram_kb * 1024, half = wanted / 2, size = 0;
  uint8_t *nvram = read_file(&size);
  if (nvram == NULL || size != wanted) {
    free(nvram);
    nvram = calloc(1, wanted);
    if (nvram == NULL) return "no memory";
  }
  if (private == NULL) private = "\nend\n";
  size_t private_at = STARTUP_HEADER + strlen(startup) + padding(strlen(startup), half);
  size_t room = limit(nvram, half), used = private_at + PRIVATE_HEADER + strlen(private);
  const char *obstacle = used > room ? "the configuration is too large" : NULL;
  if (obstacle == NULL) {
    memset(nvram, 0, room);
    fill(nvram, half, private_at, startup, private);
    obstacle = write_file(nvram, wanted);
  }
  free(nvram);
  return obstacle;
}
