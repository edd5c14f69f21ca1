"""Fields of those routes by which people come, are looked after, and answer, by the schemas of their description."""

from dpal_site.observables.kinds import MANAGERS, Basis, Shown

REST_PEOPLE = (
    Shown(
        "WishOut",
        "*",
        MANAGERS,
        Basis.MANAGERS,
        "what a population's managers ask of each other, with the words they gave for it",
    ),
    Shown(
        "MembershipOut RoleGivenOut GroupRoleOut GroupRolesOut",
        "*",
        MANAGERS,
        Basis.MANAGERS,
        "who takes part, as on the page of people: managers are inside",
    ),
    Shown(
        "InvitationOut InvitationMadeOut CrowdLinkOut CrowdLinkMadeOut",
        "*",
        MANAGERS,
        Basis.MANAGERS,
        "how people come to a project; the link itself in the answer to who made it, once",
    ),
)
