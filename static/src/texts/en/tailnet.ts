/** The node in the owner's tailnet. */

/** English. */
export const tailnet = {
  tailnet: {
    title: "Tailnet",
    intro:
      "Parlor as a machine of your tailnet: your devices reach it by name from anywhere, and no port is opened to the " +
      "internet. It runs a node of its own and leaves the one of this machine alone.",
    loadFailed: "The node’s state could not be loaded",
    states: {
      disabled: "Off",
      starting: "Starting",
      needs_auth: "Waiting for you",
      running: "On",
      stopped: "Stopped",
      error: "Failed",
    },
    name: "Name in the tailnet",
    nameHint: "Letters, digits and hyphens. The tailnet adds its own domain, and a number where the name is taken.",
    nameWrong: "1 to 63 lower-case letters, digits or hyphens, no hyphen at either end",
    turnOn: "Switch on",
    before: "Before you switch it on",
    beforeOpen:
      "Whoever is in your tailnet then reaches Parlor. Until the first passkey is made at the new address, that is enough " +
      "to use it: be the first to open it.",
    beforeLog: "With HTTPS the name appears in public certificate logs.",
    beforeClosed:
      "Everything else on this machine stays closed to the tailnet, except UDP services that listen on 127.0.0.1. Access " +
      "rules in the tailnet that allow only ports 80 and 443 close those, too.",
    starting: "The node is on its way. This takes a few seconds, with a first certificate up to a minute.",
    stopping: "The node is being switched off.",
    signIn: "Sign the node in",
    signInText: "Sign it in with your tailnet’s account, here or by scanning this with a device that has it.",
    signInQr: "QR code with the sign-in address",
    address: "Address",
    addressQr: "QR code with the address",
    copied:
      "Open it on a device in your tailnet and make a passkey there: until then everyone in the tailnet can use it.",
    plain: "Plain HTTP",
    plainOpen:
      "No passkey can close this address, so everyone in your tailnet can use Parlor there. If that is not wanted, set " +
      "pairing = “code” and sign in there with a token.",
    stopped: "Somebody stopped the node on this machine.",
    failed: "The node failed",
    notOn: "The node cannot be switched on",
    again: "Try again",
    rename: "Rename",
    turnOff: "Switch off",
    turnOffAsk: "Switch the tailnet node off?",
    turnOffReach: (address: string) => `Nobody reaches Parlor at ${address} any more.`,
    turnOffHere: "You are using that address now: this page will stop working.",
    turnOffWipe:
      "The node is signed out and everything it knows is deleted, its keys and certificate. Passkeys and chats stay.",
    turnOffAgain:
      "To use it again you have to sign it in anew. The tailnet keeps the old machine in its list, so the new one may get " +
      "a number behind its name until you delete the old one there.",
    turnedOff: "Tailnet node switched off",
  },
};
