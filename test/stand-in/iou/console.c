/* The console: lines in, text out, and what the commands do. */
#define _GNU_SOURCE
#include "iou.h"
#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <termios.h>
#include <unistd.h>

enum { USER = 1, ENABLED = 2, CONFIG = 4, INTERFACE = 8, EXEC = USER | ENABLED, CONFIGS = CONFIG | INTERFACE };
enum { ABORT_KEY = 0x1e /* control, shift and 6 */, WORDS = 64 };

static int input = STDIN_FILENO;
static int remote = -1; /* the socket that is the console with -L */
static char typed[4096];
static size_t typed_length;
static bool is_echoing, is_after_return, is_prompt_due = true;

static unsigned mode;
static char hostname[64];
static char *private; /* configuration; kept as it was found */
static unsigned selected; /* interface */
static bool is_booting; /* nobody is there to read of what is wrong */
static bool is_refused; /* the last line */
static int64_t booted_at;

static void put(const char *text, size_t length) {
  if (remote >= 0) {
    struct sockaddr_un service = {.sun_family = AF_UNIX};
    char name[16];
    snprintf(name, sizeof name, "ttyC%u", options.id);
    netio_path(service.sun_path, sizeof service.sun_path, name);
    (void)!sendto(remote, text, length, 0, (struct sockaddr *)&service, sizeof service);
    return;
  }
  while (length > 0) {
    ssize_t written = write(STDOUT_FILENO, text, length);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return;
    text += written;
    length -= (size_t)written;
  }
}

/* With the ends of lines that a terminal wants. */
static void put_text(const char *text) {
  for (const char *end; (end = strchr(text, '\n')) != NULL; text = end + 1) {
    put(text, (size_t)(end - text));
    put("\r\n", 2);
  }
  if (*text != '\0') put(text, strlen(text));
}

void say(const char *format, ...) {
  char *text;
  va_list arguments;
  va_start(arguments, format);
  int length = vasprintf(&text, format, arguments);
  va_end(arguments);
  if (length < 0) return;
  put_text(text);
  free(text);
}

static void invalid(void) {
  is_refused = true;
  if (!is_booting) say("%% Invalid input detected at '^' marker.\n\n");
}

static void prompt(void) {
  const char *ends[] = {[USER] = ">", [ENABLED] = "#", [CONFIG] = "(config)#", [INTERFACE] = "(config-if)#"};
  say("%s%s", hostname, ends[mode]);
}

static const char *interface_name(unsigned port) {
  static char name[24];
  const char *kind = interfaces[port].is_serial ? "Serial" : "Ethernet";
  snprintf(name, sizeof name, "%s%u/%u", kind, port / UNITS, port % UNITS);
  return name;
}

static const char *dotted(uint32_t address) {
  static char text[2][INET_ADDRSTRLEN];
  static unsigned next;
  struct in_addr bytes = {htonl(address)};
  return inet_ntop(AF_INET, &bytes, text[next++ % 2], INET_ADDRSTRLEN);
}

static bool read_address(const char *text, uint32_t *address) {
  struct in_addr bytes;
  if (inet_pton(AF_INET, text, &bytes) != 1) return false;
  *address = ntohl(bytes.s_addr);
  return true;
}

/* The running configuration, allocated. */
static char *running(void) {
  char *text = NULL;
  size_t length;
  FILE *to = open_memstream(&text, &length);
  if (to == NULL) fail("no memory");
  fprintf(to, "!\nversion 15.4\n!\nhostname %s\n!\n", hostname);
  for (unsigned port = 0; port < PORTS; port++) {
    const struct interface *i = &interfaces[port];
    if (!i->is_there) continue;
    fprintf(to, "interface %s\n", interface_name(port));
    if (*i->description != '\0') fprintf(to, " description %s\n", i->description);
    if (i->address == 0)
      fputs(" no ip address\n", to);
    else
      fprintf(to, " ip address %s %s\n", dotted(i->address), dotted(i->mask));
    if (i->keepalive != DEFAULT_KEEPALIVE) fprintf(to, " keepalive %u\n", i->keepalive);
    fputs(i->is_up ? " no shutdown\n!\n" : " shutdown\n!\n", to);
  }
  fputs("end\n", to);
  fclose(to);
  return text;
}

static void enable(char **words, int count) {
  (void)words, (void)count;
  mode = ENABLED;
}

static void disable(char **words, int count) {
  (void)words, (void)count;
  mode = USER;
}

static void configure(char **words, int count) {
  (void)words, (void)count;
  mode = CONFIG;
}

static void leave(char **words, int count) {
  (void)words, (void)count;
  if (mode & EXEC) say("\n%s con0 is now available\n\n", hostname);
  mode = mode == INTERFACE ? CONFIG : mode == CONFIG ? ENABLED : USER;
}

static void set_hostname(char **words, int count) {
  size_t length = strlen(words[0]);
  bool is_name = count == 1 && length < sizeof hostname && isalpha((unsigned char)words[0][0]);
  for (const char *at = words[0]; *at != '\0'; at++)
    is_name &= isalnum((unsigned char)*at) || strchr("-_.", *at) != NULL;
  if (!is_name) return invalid();
  memcpy(hostname, words[0], length + 1);
}

/* Ethernet0/0, e0/0, Serial 1/3 */
static void select_interface(char **words, int count) {
  char text[64] = "", name[17], rest;
  unsigned bay, unit;
  for (int i = 0; i < count && i < 2; i++) strncat(text, words[i], 30);
  bool is_one = sscanf(text, "%16[A-Za-z]%u/%u%c", name, &bay, &unit, &rest) == 3 && bay < BAYS && unit < UNITS;
  unsigned port = is_one ? bay * UNITS + unit : 0;
  const char *kind = interfaces[port].is_serial ? "Serial" : "Ethernet";
  if (!is_one || count > 2 || !interfaces[port].is_there) return invalid();
  if (strncasecmp(kind, name, strlen(name)) != 0) return invalid();
  selected = port;
  mode = INTERFACE;
}

static void set_address(char **words, int count) {
  uint32_t address, mask;
  if (count != 2 || !read_address(words[0], &address) || !read_address(words[1], &mask)) return invalid();
  uint32_t host = ~mask;
  if (address == 0 || mask == 0 || (host & (host + 1)) != 0) {
    if (!is_booting) say("Bad mask %s for address %s\n", dotted(mask), dotted(address));
    return;
  }
  interfaces[selected].address = address;
  interfaces[selected].mask = mask;
  interface_changed(selected);
}

static void no_address(char **words, int count) {
  (void)words, (void)count;
  interfaces[selected].address = interfaces[selected].mask = 0;
  interface_changed(selected);
}

static void set_up(bool is_up) {
  interfaces[selected].is_up = is_up;
  interface_changed(selected);
}

static void no_shutdown(char **words, int count) {
  (void)words, (void)count;
  set_up(true);
}

static void shut_down(char **words, int count) {
  (void)words, (void)count;
  set_up(false);
}

static bool read_number(const char *text, unsigned least, unsigned most, unsigned *value) {
  char *end;
  unsigned long read = strtoul(text, &end, 10);
  *value = (unsigned)read;
  return isdigit((unsigned char)*text) && *end == '\0' && read >= least && read <= most;
}

/* keepalive SECONDS */
static void set_keepalive(char **words, int count) {
  unsigned seconds;
  if (count != 1 || !read_number(words[0], 1, 30, &seconds)) return invalid();
  interfaces[selected].keepalive = seconds;
  interface_changed(selected);
}

static void describe(char **words, int count) {
  char *text = interfaces[selected].description;
  size_t length = 0, room = sizeof interfaces->description;
  for (int i = 0; i < count && length < room; i++)
    length += (size_t)snprintf(text + length, room - length, "%s%s", i > 0 ? " " : "", words[i]);
}

static void show_running(char **words, int count) {
  (void)words, (void)count;
  char *text = running();
  say("Building configuration...\n\nCurrent configuration : %zu bytes\n", strlen(text));
  put_text(text);
  free(text);
}

static void show_saved(const char *text, const char *what) {
  if (text == NULL || *text == '\0') return say("%s is not present\n", what);
  put_text(text);
  if (text[strlen(text) - 1] != '\n') say("\n");
}

static void show_startup(char **words, int count) {
  (void)words, (void)count;
  struct configs saved = nvram_load();
  show_saved(saved.startup, "startup-config");
  free(saved.startup);
  free(saved.private);
}

static void show_private(char **words, int count) {
  (void)words, (void)count;
  show_saved(private, "private-config");
}

static void show_version(char **words, int count) {
  (void)words, (void)count;
  long uptime = (long)((now_ms() - booted_at) / 1000);
  say("Patchbay IOU stand-in, %zu-bit\n%s uptime is %ld seconds\n", sizeof(void *) * 8, hostname, uptime);
  say("Application id %u, pid %d\n", options.id, (int)getpid());
  say("%u Ethernet interfaces\n%u Serial interfaces\n", options.ethernet * UNITS, options.serial * UNITS);
  say("%uK bytes of NVRAM.\n%uM bytes of memory.\n", options.nvram_kb, options.ram_mb);
}

static void show_interfaces(char **words, int count) {
  (void)words, (void)count;
  for (unsigned port = 0; port < PORTS; port++) {
    const struct interface *i = &interfaces[port];
    uint8_t m[6];
    if (!i->is_there) continue;
    const char *state = i->is_up ? "up" : "down";
    say("%s is %s%s, line protocol is %s\n", interface_name(port), i->is_up ? "" : "administratively ", state, state);
    interface_mac(port, m);
    if (!i->is_serial) say("  Hardware address is %02x%02x.%02x%02x.%02x%02x\n", m[0], m[1], m[2], m[3], m[4], m[5]);
    if (i->address != 0) say("  Internet address is %s, mask %s\n", dotted(i->address), dotted(i->mask));
    if (i->is_serial && options.keepalives) say("  Keepalive set (%u sec)\n", i->keepalive);
    say("  %lu packets input, %lu packets output\n", i->packets_in, i->packets_out);
  }
}

/* ping A.B.C.D [repeat N] [size N] [timeout SECONDS] */
static void start_ping(char **words, int count) {
  struct ping wanted = {.repeat = 5, .size = 100};
  unsigned seconds = 2;
  bool is_right = count % 2 == 1 && read_address(words[0], &wanted.address);
  for (int i = 1; is_right && i + 1 < count; i += 2) {
    const char *word = words[i], *value = words[i + 1];
    if (strcmp(word, "repeat") == 0)
      is_right = read_number(value, 1, 1000000, &wanted.repeat);
    else if (strcmp(word, "size") == 0)
      is_right = read_number(value, 36, FRAME_MAX - 14, &wanted.size);
    else
      is_right = strcmp(word, "timeout") == 0 && read_number(value, 1, 3600, &seconds);
  }
  if (!is_right) return invalid();
  wanted.timeout_ms = seconds * 1000;
  say("Type escape sequence to abort.\nSending %u, %u-byte ICMP Echos to ", wanted.repeat, wanted.size);
  say("%s, timeout is %u seconds:\n", dotted(wanted.address), seconds);
  ping_start(&wanted);
}

static void write_memory(char **words, int count) {
  (void)words, (void)count;
  say("Building configuration...\n");
  char *text = running();
  const char *obstacle = nvram_save(text, private);
  if (obstacle == NULL)
    say("[OK]\n");
  else
    say("%%NVRAM: %s\n[Failed]\n", obstacle);
  free(text);
}

static void reload(char **words, int count) {
  (void)words, (void)count;
  say("\n%%SYS-5-RELOAD: Reload requested by console\n\n");
  console_boot();
}

static void end_by(int number) {
  sigset_t all;
  sigfillset(&all);
  sigprocmask(SIG_UNBLOCK, &all, NULL);
  if (number != SIGKILL && number != SIGSTOP) signal(number, SIG_DFL);
  raise(number);
}

/* crash [CODE | SIGNAL]: as a crash does, it leaves the socket and the lock file where they are. */
static void crash(char **words, int count) {
  static const struct {
    const char *name;
    int number;
  } signals[] = {{"SIGSEGV", SIGSEGV}, {"SIGABRT", SIGABRT}, {"SIGBUS", SIGBUS},   {"SIGFPE", SIGFPE},
                 {"SIGILL", SIGILL},   {"SIGKILL", SIGKILL}, {"SIGTERM", SIGTERM}, {"SIGSTOP", SIGSTOP}};
  unsigned code;
  if (count == 0) return end_by(SIGSEGV);
  if (read_number(words[0], 0, 255, &code)) _exit((int)code);
  for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
    if (strcmp(words[0], signals[i].name) == 0) return end_by(signals[i].number);
  invalid();
}

static void echo(char **words, int count) {
  (void)words, (void)count;
  is_echoing = true;
}

static void no_echo(char **words, int count) {
  (void)words, (void)count;
  is_echoing = false;
}

/* Not of any image: by what it prints, a test finds where the output of another command begins and ends. */
static void print(char **words, int count) {
  for (int i = 0; i < count; i++) say("%s%s", words[i], i + 1 < count ? " " : "\n");
}

/* Three dots are for words that the function gets; the first of them has to be there unless they are in brackets. */
static const struct {
  unsigned modes;
  const char *words;
  void (*run)(char **words, int count);
} commands[] = {
    {EXEC, "enable", enable},
    {ENABLED, "disable", disable},
    {ENABLED, "configure terminal", configure},
    {CONFIGS, "end", enable},
    {EXEC | CONFIGS, "exit", leave},
    {CONFIGS, "hostname ...", set_hostname},
    {CONFIGS, "interface ...", select_interface},
    {INTERFACE, "ip address ...", set_address},
    {INTERFACE, "no ip address", no_address},
    {INTERFACE, "no shutdown", no_shutdown},
    {INTERFACE, "shutdown", shut_down},
    {INTERFACE, "description ...", describe},
    {INTERFACE, "keepalive ...", set_keepalive},
    {ENABLED, "show running-config", show_running},
    {ENABLED, "show startup-config", show_startup},
    {ENABLED, "show private-config", show_private},
    {EXEC, "show version", show_version},
    {EXEC, "show interfaces", show_interfaces},
    {EXEC, "ping ...", start_ping},
    {ENABLED, "write memory", write_memory},
    {ENABLED, "reload", reload},
    {EXEC, "crash [...]", crash},
    {EXEC | CONFIGS, "print ...", print},
    {EXEC, "terminal echo", echo},
    {EXEC, "terminal no echo", no_echo},
};

/* How many words of the line are the command's own; -1 when it is another command. Words may be cut short. */
static int own_words(const char *pattern, char **words, int count) {
  for (int i = 0;; i++) {
    size_t length = strcspn(pattern, " ");
    if (strncmp(pattern, "...", 3) == 0) return i < count ? i : -1;
    if (length == 0) return i == count ? i : -1;
    if (strncmp(pattern, "[...]", 5) == 0) return i;
    if (i == count) return -1;
    size_t given = strlen(words[i]);
    if (given > length || strncasecmp(pattern, words[i], given) != 0) return -1;
    pattern += length + (pattern[length] == ' ');
  }
}

static void execute(char *line) {
  char *words[WORDS], *rest = NULL;
  int count = 0;
  while (count < WORDS && (words[count] = strtok_r(count == 0 ? line : NULL, " \t", &rest)) != NULL) count++;
  if (count == 0 || *words[0] == '!') return;
  for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
    int own = (commands[i].modes & mode) != 0 ? own_words(commands[i].words, words, count) : -1;
    if (own >= 0) return commands[i].run(words + own, count - own);
  }
  invalid();
}

/* What there is no command for is passed over: a configuration is written for more than this. */
static void execute_config(char *text) {
  char *line, *rest = text;
  is_booting = true;
  mode = CONFIG;
  while ((mode & CONFIGS) != 0 && (line = strsep(&rest, "\r\n")) != NULL) {
    bool is_indented = isspace((unsigned char)*line);
    is_refused = false;
    if (strcmp(line, "exit") != 0) execute(line);
    /* What is below this one does not belong to the interface before it. */
    if (is_refused && !is_indented) mode = CONFIG;
  }
  is_booting = false;
}

/* Of -c; allocated. */
static char *config_file(void) {
  FILE *file = options.config == NULL ? NULL : fopen(options.config, "re");
  char *text = NULL;
  size_t size = 0;
  if (file == NULL) {
    if (options.config != NULL) say("%%Error opening %s: %s\n", options.config, strerror(errno));
    return NULL;
  }
  if (getdelim(&text, &size, '\0', file) < 0) *(text = realloc(text, 1)) = '\0';
  fclose(file);
  return text;
}

void console_boot(void) {
  booted_at = now_ms();
  strcpy(hostname, "Router");
  is_echoing = false;
  router_reset();
  say("\nPatchbay IOU stand-in, application id %u\n\n", options.id);
  free(private);
  struct configs saved = nvram_load();
  private = saved.private;
  if (saved.startup == NULL || *saved.startup == '\0') {
    free(saved.startup);
    saved.startup = config_file();
  }
  if (saved.startup != NULL) execute_config(saved.startup);
  free(saved.startup);
  mode = USER;
  say("Press RETURN to get started.\n\n");
  is_prompt_due = true;
}

void console_open(void) {
  if (options.remote_console) {
    char name[16], path[64];
    snprintf(name, sizeof name, "ttyS%u", options.id);
    netio_path(path, sizeof path, name);
    input = remote = netio_bind(path);
    return;
  }
  struct termios settings;
  if (tcgetattr(STDIN_FILENO, &settings) != 0) return;
  cfmakeraw(&settings);
  tcsetattr(STDIN_FILENO, TCSANOW, &settings);
}

int console_input(void) { return typed_length < sizeof typed ? input : -1; }

void console_continue(void) {
  while (!ping_is_running()) {
    if (is_prompt_due) prompt();
    is_prompt_due = false;
    char *end = memchr(typed, '\n', typed_length);
    if (end == NULL) break;
    char line[sizeof typed];
    size_t length = (size_t)(end - typed);
    memcpy(line, typed, length);
    line[length] = '\0';
    typed_length -= length + 1;
    memmove(typed, end + 1, typed_length);
    execute(line);
    is_prompt_due = true;
  }
  if (typed_length == sizeof typed && !ping_is_running()) typed_length = 0;
}

static void take(char byte) {
  bool is_second = is_after_return && byte == '\n';
  is_after_return = byte == '\r';
  if (is_second || byte == '\0') return;
  if (byte == ABORT_KEY) return ping_abort();
  if (byte == '\r') byte = '\n';
  if (is_echoing) put_text((char[]){byte, '\0'});
  if (typed_length < sizeof typed) typed[typed_length++] = byte;
}

void console_read(void) {
  char bytes[sizeof typed];
  ssize_t length = read(input, bytes, sizeof typed - typed_length);
  if (length <= 0) {
    /* An empty datagram asks whether we are there. An input that has ended is not waited for any more. */
    if (remote < 0 && (length == 0 || (errno != EINTR && errno != EAGAIN))) input = -1;
    return;
  }
  for (ssize_t i = 0; i < length; i++) take(bytes[i]);
}
