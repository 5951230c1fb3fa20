"""Buyers rate what they bought."""

from collections.abc import Callable

from gateway import (
    Condition,
    Discovery,
    EventReader,
    EventType,
    Gateway,
    Mount,
    Part,
    hookimpl,
)
from gateway_reviews import ratings

_BAD_AVERAGE = 2.5


@hookimpl
def register_parts(register: Callable[[Part], None], gateway: Gateway) -> None:
    """Add `POST /reviews`, a condition for badly rated endpoints, and a count of purchases."""

    async def find() -> list[Condition]:
        averages = await gateway.store.read(ratings.averages)
        return [
            Condition(
                name="reviews_bad",
                subject=slug,
                level="warn",
                title=f"{slug} is rated badly",
                text=f"Its buyers give {stars:.1f} of 5 stars.",
                action="Check its newest results.",
            )
            for slug, stars in averages.items()
            if stars < _BAD_AVERAGE
        ]

    register(
        Part(
            name="reviews",
            mounts=[
                Mount(
                    paths=["/reviews"],
                    blueprint="gateway_reviews.routes:make_blueprint",
                    limit="30/60s",
                )
            ],
            discovery=Discovery(guide={"/reviews": "POST a rating of a completed task here"}),
            conditions=find,
        )
    )
    register(
        Part(
            name="reviews-purchases",
            events=EventReader(take=ratings.note_purchases, types=[EventType.TASK_COMPLETED]),
        )
    )
