/** Texts of the tailnet node. */

/** English. */
export const tailnet = {
  tailnet: {
    title: "Tailnet",
    intro:
      "Add Parlor to your tailnet as a machine. Your devices can reach it by name from anywhere, without a port open to the internet. Tailscale on this machine isn’t affected.",
    loadFailed: "Couldn’t load the tailnet status",
    states: {
      disabled: "Off",
      starting: "Starting",
      needs_auth: "Sign-in required",
      running: "On",
      stopped: "Stopped",
      error: "Failed",
    },
    name: "Machine name",
    nameHint: "Letters, digits and hyphens. The tailnet adds its domain, and a number if the name is taken.",
    nameWrong: "Use 1 to 63 lowercase letters, digits or hyphens, with no hyphen at either end",
    turnOn: "Turn on",
    before: "Before you turn it on",
    beforeOpen:
      "Everyone in your tailnet will be able to reach Parlor, and to use it until the first passkey is created at the new address. Open it first and create one.",
    beforeLog: "With HTTPS, the name appears in public certificate logs.",
    beforeClosed:
      "Nothing else on this machine becomes reachable from the tailnet, except UDP services that listen on 127.0.0.1. To block those, too, allow only ports 80 and 443 in the tailnet’s access rules.",
    starting: "Starting the node. This takes a few seconds, or up to a minute for the first certificate.",
    stopping: "Turning off the node.",
    signIn: "Sign in to your tailnet",
    signInText: "Sign in here, or scan this code with a device that has your tailnet account.",
    signInQr: "QR code with the sign-in link",
    address: "Address",
    addressQr: "QR code with the address",
    copied:
      "Open it on a device in your tailnet and create a passkey. Until then, everyone in the tailnet can use Parlor.",
    plain: "Plain HTTP",
    plainOpen:
      "Passkeys don’t work at this address, so everyone in your tailnet can use Parlor there. To prevent that, set pairing = “code” and sign in with a token.",
    stopped: "The node was stopped on this machine.",
    failed: "The node failed",
    notOn: "Couldn’t turn on the node",
    again: "Try again",
    rename: "Rename",
    turnOff: "Turn off",
    turnOffAsk: "Turn off the tailnet node?",
    turnOffReach: (address: string) => `Parlor won’t be reachable at ${address}.`,
    turnOffHere: "You’re using that address now, so this page will stop working.",
    turnOffWipe: "The node is signed out, and its keys and certificate are deleted. Your passkeys and chats stay.",
    turnOffAgain:
      "To use it again, you’ll have to sign in again. The old machine stays in the tailnet’s list, so the new one may get a number after its name until you delete the old one there.",
    turnedOff: "Tailnet node turned off",
  },
  phone: {
    title: "Use on your phone",
    intro: "An address that your phone can reach, a code to scan, and you’re in.",
    open: "Set up a phone",
    address: "An address for your phone",
    whyNotLocalhost: (host: string) =>
      `${host} means “this device” on every device, so a phone would look for Parlor on itself. It needs an address of its own, with HTTPS, because browsers allow passkeys only there.`,
    whyHttps: "This address has no HTTPS, and browsers allow passkeys only with it. Choose how to add it.",
    ways: {
      tailnet: "Tailnet: reach Parlor from anywhere, nothing to open or certify",
      proxy: "A proxy with a certificate: your own domain, such as with Caddy",
    },
    proxyText:
      "Let a proxy such as Caddy answer for your domain with HTTPS and pass requests on to Parlor, and add the proxy to trusted_proxies. Then enter the address here. With a proxy on this machine, Parlor no longer opens at localhost: continue at the new address.",
    proxyAddress: "Address",
    proxyWrong: "Enter an address that starts with https:// and has a name, not an IP address",
    checking: "Checking whether this address leads to Parlor …",
    checks: {
      ok: "This address leads to Parlor, with all that a phone needs.",
      unresolved: "This name has no address yet",
      unreachable: "Parlor gets no response from this address",
      certificate: "The certificate of this address isn’t trusted",
      host_not_allowed: "Parlor doesn’t accept this name yet",
      other_server: "Another server responds at this address",
      proxy_headers: "Parlor can’t tell that the connection is encrypted",
      host_changed: "The proxy changes the name",
    },
    checkHints: {
      unresolved: (host: string) => `Add a DNS record for ${host} that leads to the proxy. New records take a while.`,
      unreachable: () =>
        "Check that the proxy runs and that its port is open. Some routers don’t lead your own network to your public address; if yours doesn’t, the phone can still reach it from outside.",
      certificate: () =>
        "A phone wouldn’t trust it either. Caddy gets a certificate by itself once the name leads to it; others need one of a public authority, such as Let’s Encrypt.",
      host_not_allowed: (host: string) => `Add ${host} to allowed_hosts in the configuration, and restart Parlor.`,
      other_server: () => "Check which program the proxy passes this name on to.",
      proxy_headers: () =>
        "The proxy must send X-Forwarded-Proto and X-Forwarded-For, and its address must be in trusted_proxies.",
      host_changed: (host: string) => `Have the proxy pass the Host header on as it is: ${host}.`,
    },
    scan: "Scan with the phone",
    waitingAddress: "The code appears here as soon as the address is ready.",
    scanText: "Point the phone’s camera at the code, open the link, and create a passkey.",
    waitingDevice: "Waiting for the phone to sign in",
    arrived: (name: string) => `${name} is signed in`,
    unreachable:
      "Nothing happens? Check that the phone is in the same tailnet or network, and that it shows Parlor at this address.",
  },
};
