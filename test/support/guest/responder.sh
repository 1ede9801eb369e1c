#!/bin/busybox sh
# Answers one request as a compute would; its input and output are the connection.
export PATH=/bin
read -r method path protocol
length=0
while read -r line; do
  line=${line%?}
  [ -z "$line" ] && break
  case $line in [Cc]ontent-[Ll]ength:*) length=${line#*:} ;; esac
done
head='HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n'
answer() { printf "$head"'Content-Length: %s\r\n\r\n%s' "${#1}" "$1"; }
read -r version </version
case $path in
  /v2/compute/version) answer "{\"version\":\"$version\",\"local\":false}" ;;
  /v2/compute/capabilities) answer "{\"version\":\"$version\",\"platform\":\"linux\",\"node_types\":[\"pc\"]}" ;;
  /v2/compute/notifications)
    printf "$head"'\r\n'
    while echo '{"action":"ping","event":{"cpu_usage_percent":1,"memory_usage_percent":2}}'; do sleep 2; done
    ;;
  *)
    read -r boot </proc/sys/kernel/random/boot_id
    set -- $(free -m | grep Mem:)
    answer "{\"asked\":\"$method $path\",\"body\":\"$(head -c $length)\",\"boot\":\"$boot\",\"ram\":$2}"
    ;;
esac
