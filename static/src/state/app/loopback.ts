/** Reports whether a host name or address means the machine itself on every machine. */
export function isLoopback(hostname: string): boolean {
  return /^(localhost|127\.[\d.]+|\[?::1\]?)$|\.localhost$/.test(hostname);
}
