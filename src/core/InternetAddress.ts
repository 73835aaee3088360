/**
 * Which addresses belong to the open internet. An allow list: what is not known to be public is not reached.
 *
 * Loopback, private and link-local networks, multicast, reserved blocks and every form in which IPv6 carries an IPv4
 * address (mapped, translated, 6to4, Teredo) are not public. The blocks are those of IANA's special-purpose registries
 * (RFC 6890), as `ipaddr.js` knows them.
 */
import ipaddr from "ipaddr.js"

/** Whether an address is one of the open internet. A text that is no address is not. */
export const isPublic = (address: string): boolean => {
  if (!ipaddr.isValid(address)) return false
  const parsed = ipaddr.parse(address)
  if (parsed.range() !== "unicast") return false
  // Of all others, only these have been given out: RFC 4291, section 2.4.
  return parsed.kind() === "ipv4" || parsed.match(globalUnicast)
}

/** The address that stands as a host in a web address, where it is one and no name. */
export const ofHost = (hostname: string): string | undefined => {
  const address = hostname.replace(/^\[(.*)\]$/, "$1")
  return ipaddr.isValid(address) ? address : undefined
}

/** Whether an address leads to this machine. */
export const isLoopback = (address: string): boolean =>
  ipaddr.isValid(address) && ipaddr.process(address).range() === "loopback"

/** Whether an address is another one, or lies in a block such as `10.0.0.0/8`. */
export const isIn = (address: string, block: string): boolean => {
  const parsed = ipaddr.process(address)
  if (ipaddr.isValid(block)) return ipaddr.process(block).toString() === parsed.toString()
  if (!ipaddr.isValidCIDR(block)) return false
  const [base, bits] = ipaddr.parseCIDR(block)
  return base.kind() === parsed.kind() && parsed.match(base, bits)
}

const globalUnicast = ipaddr.IPv6.parseCIDR("2000::/3")
