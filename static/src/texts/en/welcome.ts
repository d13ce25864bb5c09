/** The first visit. */

/** English. */
export const welcome = {
  firstRun: {
    title: "Connect a language model",
    text:
      "Only the built-in demonstration answers now, and it is not a language model. Parlor can look for one that runs on this machine.",
    find: "Find a model",
    manual: "Enter an address",
    later: "Not now",
  },

  welcome: {
    step: (at: number, of: number) => `Step ${at} of ${of}`,
    titles: { model: "Who answers", name: "Your name", passkey: "Protect this Parlor with a passkey" },
    modelText: "Parlor needs a language model to talk to. Looking for servers on this machine now.",
    modelThere: (name: string) => `“${name}” answers. You can change that in the settings at any time.`,
    nameHint: "How characters and models may address you. It stays on this server, in what your models are sent.",
    passkeyLocal:
      "On this machine none is needed. Opened from elsewhere, Parlor asks for a passkey, and each address has its own. You can make one for this address now.",
    passkeyThere: "This address opens with a passkey already. Further devices are added under Settings, Privacy.",
    goOn: "Continue",
    skip: "Skip",
    start: "Start chatting",
    container:
      "Parlor runs in a container and looks only inside it. Have it look at the machine around it: set this variable, as compose.yaml does, and restart the container.",
    elsewhere: (hosts: string) =>
      `Parlor looked at ${hosts}. A server there answers only if it listens on more than its own machine.`,
    listen: "Start each server like this:",
    listenNote: "Other machines of your network reach it then as well.",
  },
};
